"""The result of a bench: which method did what in which world, as data and as tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from etips.results.records import STRICT, Record, to_json
from etips.results.study_result import Chart, Series, Table

Group = Literal["ours", "told", "simple", "peer"]
"""Of this package; the same told the true propensities; policies that learn nothing of patients;
other packages. Those told are shown beside the others and not ranked."""

Place = Literal["first", "level", "behind", "told", "failed"]
"""First, within one standard error of first, behind it, not ranked, or without a policy."""


@dataclass(frozen=True)
class BenchEntry:
    """One method in one world at one seed; None where a figure does not exist.

    Args:
        failed: Why there is no policy, in words.
        risk: True risk of the policy as it is followed; of the trial, by its known odds.
        estimate: What `etips evaluate` would say without knowing the truth.
        stay_risk: Mortality where the policy treats from admission to the end.
        abstained: Share of decisions left to the clinicians.
        rare: Share of decisions with an action that clinicians take in under 5 % of such patients.
        memory: Most megabytes while learning.
    """

    world: str
    method: str
    seed: int
    failed: str | None = None
    risk: float | None = None
    std_error: float | None = None
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    verdict: str | None = None
    stay_risk: float | None = None
    abstained: float | None = None
    rare: float | None = None
    seconds: float | None = None
    processor: float | None = None
    memory: float | None = None


@dataclass(frozen=True)
class BenchRow:
    """One method in one world, over all seeds.

    Args:
        behind: Mean paired difference to the first.
    """

    method: str
    group: Group
    place: Place
    n_seeds: int
    risk: float | None = None
    behind: float | None = None
    behind_error: float | None = None
    estimate: float | None = None
    verdicts: Mapping[str, int] = field(default_factory=dict)
    stay_risk: float | None = None
    rare: float | None = None
    seconds: float | None = None
    processor: float | None = None
    memory: float | None = None
    failed: str | None = None


@dataclass(frozen=True)
class BenchStanding:
    """One world: its size, what is possible there, and the methods, the best first.

    Args:
        best: True risk of the best policy that sees the world's own state; None where unknown.
        clinicians_stay: Mortality of the clinicians' own stays.
        ours_level: Whether that is first or within one standard error of first.
    """

    world: str
    sentence: str
    measure: Literal["accuracy", "risk", "trial"]
    n_learn: int
    n_test: int
    clinicians: float | None
    best: float | None
    clinicians_stay: float | None
    rows: tuple[BenchRow, ...]
    first: str | None
    best_of_ours: str | None
    ours_level: bool | None
    why: tuple[str, ...] = ()

    def row(self, method: str | None) -> BenchRow | None:
        """Of a method."""
        return next((own for own in self.rows if own.method == method), None)


@dataclass(frozen=True)
class Bench:
    """A bench.

    Args:
        seconds: Processor time of all learning.
    """

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    lead: str
    quick: bool
    seeds: int
    labels: Mapping[str, str]
    sentences: Mapping[str, str]
    standings: tuple[BenchStanding, ...]
    entries: tuple[BenchEntry, ...]
    machine: Record
    absent: tuple[str, ...] = ()
    seconds: float = 0.0

    def to_json(self) -> dict[str, object]:
        """As `results.json` holds it."""
        return to_json(self)


NONE = "-"
PLACES = {"first": "1st", "level": "level", "behind": "", "told": "told", "failed": "failed"}
"""How a place is written."""

NOTES = (
    "1st: least true risk (the greatest accuracy of labelled samples); level: within one standard "
    "error of it, paired stay by stay; told: learned from the true propensities, so not ranked. "
    "est.: what etips evaluate says without the truth, with its verdict. stay: mortality had the "
    "policy treated throughout. s: processor seconds of learning. MB: peak memory while learning, "
    "data and packages included."
)
LOWEST = -1.0
"""Shares of the possible gain below this are drawn here."""


def summary_table(bench: Bench) -> Table:
    """Who leads where, and how far ours is behind."""
    rows = [
        (
            own.world,
            own.first or NONE,
            own.best_of_ours or NONE,
            gap(own.row(own.best_of_ours)),
            _level(own),
            gap(own.row("auto")),
        )
        for own in bench.standings
    ]
    return Table(
        "Ours against the first, world by world",
        "behind: how much larger the true risk is than that of the first, with its standard error.",
        ("world", "first", "best of ours", "behind", "level", "auto behind"),
        tuple(rows),
    )


def world_table(own: BenchStanding) -> Table:
    """The methods of one world, the best first."""
    accuracy = own.measure == "accuracy"
    rows = [
        _cells(row, accuracy=accuracy, stays=own.clinicians_stay is not None) for row in own.rows
    ]
    stay = ("stay",) if own.clinicians_stay is not None else ()
    head = "right" if accuracy else "risk"
    columns = ("method", "place", head, "behind", "est.", "verdict", *stay, "s", "MB")
    return Table(f"{own.world}: {own.sentence}", _note(own), columns, tuple(rows))


def failures(own: BenchStanding) -> list[str]:
    """A line for each method that failed, with the reason."""
    return [f"{row.method}: {row.failed}" for row in own.rows if row.failed is not None]


def gap(row: BenchRow | None) -> str:
    """How far a method is behind the first."""
    if row is None or row.behind is None:
        return NONE
    return "0" if row.place == "first" else f"{row.behind:+z.4f} ± {row.behind_error or 0.0:.4f}"


def gain_chart(bench: Bench) -> Chart:
    """Share of the possible gain over the clinicians that each method reaches, world by world."""
    series = []
    for own in bench.standings:
        if own.clinicians is None or own.best is None or own.clinicians <= own.best:
            continue
        room = own.clinicians - own.best
        done = [(row.method, (own.clinicians - row.risk) / room) for row in own.rows if row.risk]
        names = tuple(name for name, _ in done)
        series.append(Series(own.world, names, tuple(max(value, LOWEST) for _, value in done)))
    return Chart(
        name="bench",
        kind="scatter",
        title="Share of the possible gain over the clinicians",
        caption="1 is the best that is possible, 0 what the clinicians do; below -1 drawn at -1.",
        x="method",
        y="share of the possible gain",
        series=tuple(series),
    )


def as_markdown(bench: Bench) -> str:
    """The tables as a document holds them."""
    lines = [bench.lead, "", NOTES, ""]
    machine = ", ".join(f"{key} {value}" for key, value in sorted(bench.machine.items()))
    lines += [f"Machine: {machine}.", ""]
    if bench.absent:
        lines += [f"Peers that were not installed: {', '.join(bench.absent)}.", ""]
    lines += _markdown(summary_table(bench))
    for own in bench.standings:
        lines += _markdown(world_table(own))
        lines += [f"- {reason}" for reason in (*own.why, *failures(own))]
        lines += [""] if own.why or failures(own) else []
    return "\n".join(lines).rstrip() + "\n"


def _markdown(table: Table) -> list[str]:
    rows: Sequence[Sequence[object]] = [table.columns, ["---"] * len(table.columns), *table.rows]
    body = [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]
    return [f"## {table.title}", "", *([table.note, ""] if table.note else []), *body, ""]


def _level(own: BenchStanding) -> str:
    return NONE if own.ours_level is None else "yes" if own.ours_level else "no"


def _note(own: BenchStanding) -> str:
    known = [f"{own.n_learn:,} stays to learn from, {own.n_test:,} to judge by"]
    show = (lambda risk: f"{1 - risk:.3f}") if own.measure == "accuracy" else "{:.4f}".format
    if own.clinicians is not None:
        known.append(f"clinicians {show(own.clinicians)}")
    if own.best is not None:
        known.append(f"best possible {show(own.best)}")
    if own.clinicians_stay is not None:
        known.append(f"mortality under the clinicians {own.clinicians_stay:.3f}")
    if own.measure == "trial":
        known.append("no truth: risks are estimates by the trial's odds, paired by patient")
    return "; ".join(known) + "."


def _cells(row: BenchRow, *, accuracy: bool, stays: bool) -> tuple[str, ...]:
    risk = NONE if row.risk is None else f"{1 - row.risk:.3f}" if accuracy else f"{row.risk:.4f}"
    estimate = row.estimate if row.estimate is None or not accuracy else 1 - row.estimate
    return (
        row.method,
        PLACES[row.place],
        risk,
        gap(row),
        NONE if estimate is None else f"{estimate:.3f}",
        ", ".join(
            f"{word}" if n == row.n_seeds else f"{n} {word}" for word, n in row.verdicts.items()
        ),
        *((NONE if row.stay_risk is None else f"{row.stay_risk:.3f}",) if stays else ()),
        NONE if row.processor is None else f"{row.processor:.1f}",
        NONE if row.memory is None else f"{row.memory:.0f}",
    )
