"""A bench as tables: one line a world, then one table a world, for terminal and documents."""

from collections.abc import Sequence

from etips.results.bench_result import Bench, BenchRow, BenchStanding
from etips.results.study_result import Chart, Series, Table

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
            gap(own.row("etips")),
        )
        for own in bench.standings
    ]
    return Table(
        "Ours against the first, world by world",
        "behind: how much larger the true risk is than that of the first, with its standard error.",
        ("world", "first", "best of ours", "behind", "level", "etips behind"),
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
