"""`etips cohort` and `etips validate`: the Sepsis-3 cohort, and whether it is the paper's."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from etips.cli.console import JsonFlag, OverwriteFlag, progress_bar, refusals, show
from etips.cohorts.build import build_cohort
from etips.cohorts.databases import DATABASES, LAYOUTS, compare, extract, resumable_source
from etips.cohorts.dataset.agreement import Check, Evidence, Outcome
from etips.cohorts.dataset.sepsis_cohort import Cohort, to_trajectories
from etips.cohorts.engines.address import Engine
from etips.cohorts.sepsis3.rules import steps_of_hours
from etips.data.trajectory_writer import MANIFEST, save_trajectories
from etips.disclosure import FEW, are_few, hide_together
from etips.files.artifacts import require_place

_PROFILES = tuple(dict.fromkeys(name for data in DATABASES.values() for name in data.profiles))
_EACH = "; ".join(f"{data.label}: {', '.join(data.profiles)}" for data in DATABASES.values())

_DEFINITIONS = tuple(
    dict.fromkeys(name for data in DATABASES.values() for name in data.definitions)
)
_OTHERS = "; ".join(
    f"{data.label}: {', '.join(data.definitions)}"
    for data in DATABASES.values()
    if data.definitions
)

if TYPE_CHECKING:
    ProfileName = str
    Definition = StrEnum
else:
    Definition = StrEnum("Definition", {name: name for name in _DEFINITIONS})
    """Names on the command line, likewise."""
    ProfileName = StrEnum("ProfileName", {name: name for name in _PROFILES})
    """Names on the command line; which of them a database has is checked when it is known."""


class StepLength(StrEnum):
    """How long a step is."""

    ONE = "1h"
    TWO = "2h"
    FOUR = "4h"

    @property
    def hours(self) -> int:
        """As a number."""
        return int(self.value.removesuffix("h"))


def cohort(
    source: Annotated[
        str,
        typer.Argument(
            help="Folder of CSV, CSV.gz or Parquet tables, .duckdb file, postgresql:// or spark:."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Cohort folder to write.")],
    profile: Annotated[
        ProfileName | None,
        typer.Option(help=f"Which rules; if left out, the first that the database has ({_EACH})."),
    ] = None,
    step: Annotated[
        StepLength, typer.Option(help="Length of a step; shorter ones exclude their right edge.")
    ] = StepLength.FOUR,
    onset: Annotated[
        Definition | None,
        typer.Option(help=f"Sepsis-3 as others define it ({_OTHERS}); the paper's if left out."),
    ] = None,
    engine: Annotated[Engine, typer.Option(help="What runs the queries.")] = Engine.DUCKDB,
    memory: Annotated[str, typer.Option(help="Memory the query engine may use.")] = "2GB",
    overwrite: OverwriteFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Build the Sepsis-3 cohort of the paper from the raw tables of a hospital database.

    The folder is a Trajectories folder for `etips fit`, with the 59-column table, onsets, the
    funnel and its drawing, the dose classes and an audit beside it. Killed, the same command goes
    on where it had got to.
    """
    with refusals("etips cohort"):
        require_place(out, manifest_name=MANIFEST, overwrite=overwrite)
        with (
            progress_bar() as progress,
            resumable_source(source, out=out, engine=engine, memory_limit=memory) as opened,
        ):
            changes = steps_of_hours(step.hours) | ({"onset": onset.value} if onset else {})
            extraction = extract(opened, profile, changes)
            built = build_cohort(extraction, progress=progress)
            progress("writing", 0.95)
            save_trajectories(
                to_trajectories(built), out, overwrite=overwrite, beside=built.files()
            )
        show(f"cohort in {out}", funnel_rows(built), as_json=as_json)
        if not as_json:
            show("dose classes", dose_rows(built), as_json=False)
            typer.echo(summary(built))


cohort.__doc__ = f"{cohort.__doc__}\n    The tables are those of {LAYOUTS.label}."


def validate(
    folder: Annotated[Path, typer.Argument(help="Folder that `etips cohort` wrote.")],
    as_json: JsonFlag = False,
) -> None:
    """Compare a cohort with published figures: target, what is accepted, found, pass or fail.

    Where nobody has published any, its own are told.
    """
    with refusals("etips validate"):
        as_row = _numbers if as_json else _texts
        checks = compare(Evidence.read(folder))
        rows = [as_row(check) for check in checks]
        show(f"{folder} against what is published", rows, as_json=as_json)
        if not as_json:
            typer.echo(count_outcomes(checks))


def _numbers(check: Check) -> dict[str, object]:
    return {
        "quantity": check.quantity,
        "target": check.target,
        "low": check.low,
        "high": check.high,
        "found": None if check.tells_few else check.found,
        "outcome": check.outcome.value,
    }


def count_outcomes(checks: Sequence[Check]) -> str:
    """How many figures came to what, in one line."""
    found = [check.outcome for check in checks]
    parts = [f"{found.count(own)} {own.value}" for own in Outcome if own in found]
    return f"{len(checks)} figures: {', '.join(parts)}."


def _texts(check: Check) -> dict[str, object]:
    found = "-" if check.found is None else _figure(check.found)
    return {
        "quantity": check.quantity,
        "target": "-" if check.target is None else _figure(check.target),
        "accepted": _accepted(check),
        "found": "not shown" if check.tells_few else found,
        "outcome": check.outcome.value,
    }


def _accepted(check: Check) -> str:
    """What is near enough to a published figure."""
    if check.target is None or check.low is None or check.high is None:
        return "-"
    above, below = check.high - check.target, check.target - check.low
    if above == below == 0:
        return "exactly"
    alike = abs(above - below) <= 1e-9 * max(abs(check.target), 1.0)
    return (
        f"± {_figure(float(f'{above:.3g}'))}"
        if alike
        else f"{_figure(check.low)} to {_figure(check.high)}"
    )


def _figure(value: float) -> str:
    """Five digits, but of a large number every digit before the point: counts are exact."""
    return f"{value:.0f}" if abs(value) >= 10_000 else f"{value:.5g}"


def funnel_rows(built: Cohort) -> list[dict[str, object]]:
    """The funnel as rows, without a count of fewer than eleven people or one that tells it."""
    funnel, shown = built.funnel, built.funnel.shown
    stages = [(stage.name, stage.n_stays) for stage in funnel.stages]
    sizes = [("rows (stay and step)", funnel.n_rows)]
    sizes += [(f"decisions, reading {name}", count) for name, count in funnel.n_samples.items()]
    kept = (*shown.stages, shown.rows, *shown.samples)
    return [
        {"step": name, "count": _told(count or 0, seen)}
        for (name, count), seen in zip([*stages, *sizes], kept, strict=True)
    ]


def dose_rows(built: Cohort) -> list[dict[str, object]]:
    """Edges, medians and rows of the dose classes as rows."""
    rows: list[dict[str, object]] = []
    drugs = {"fluid, mL": built.fluid, "vasopressor, mcg/kg/min": built.vasopressor}
    for drug, classes in drugs.items():
        tops = ("0", *(f"{edge:.4g}" for edge in classes.edges), "")
        hidden = hide_together(classes.counts)
        for number, (top, median) in enumerate(zip(tops, classes.medians, strict=True)):
            rows.append(
                {
                    "drug": drug,
                    "class": number + 1,
                    "up to": top,
                    "median": f"{median:.4g}",
                    "rows": "not shown" if hidden[number] else classes.counts[number],
                }
            )
    return rows


def summary(built: Cohort) -> str:
    """What the audit found, in two lines."""
    odd = [item for item in built.units if item.n_unexpected]
    rows = sum(item.n_unexpected for item in odd)
    told = FEW if are_few(rows) else f"{rows:,}"
    missing = {name: share or 0.0 for name, share in built.funnel.missing_share.items()}
    worst = sorted(missing, key=lambda name: -missing[name])[:3]
    return (
        f"units: {told} rows of {len(odd)} items, of {len(built.units)} items read, are in an"
        " unexpected unit; see audit.json\n"
        "missing before imputation, most: "
        + ", ".join(f"{name} {missing[name]:.0%}" for name in worst)
        + _not_read(built)
    )


def _not_read(built: Cohort) -> str:
    """Rows of items that are known and not read, if there are any."""
    rows = sum(item.n_rows for item in built.unread)
    if not rows:
        return ""
    told = FEW if are_few(rows) else f"{rows:,}"
    return f"\nknown and not read: {told} rows of {len(built.unread)} items; see audit.json"


def _told(count: int, shown: int | None) -> object:
    if shown is None:
        return FEW if are_few(count) else "not shown"
    return shown
