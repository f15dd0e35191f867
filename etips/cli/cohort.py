"""`etips cohort` and `etips validate`: the Sepsis-3 cohort, and whether it is the paper's."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from etips.cli.console import JsonFlag, OverwriteFlag, progress_bar, show
from etips.cohorts.build import build_cohort
from etips.cohorts.databases import DATABASES, LAYOUTS, compare, extract, resumable_source
from etips.cohorts.dataset.agreement import Check, Evidence, Outcome
from etips.cohorts.dataset.sepsis_cohort import Cohort, to_trajectories
from etips.cohorts.engines.address import Engine
from etips.cohorts.sepsis3.rules import steps_of_hours
from etips.data.storage import MANIFEST, save_trajectories
from etips.disclosure import FEW, are_few, hide_together
from etips.files.artifacts import require_place

_PROFILES = tuple(dict.fromkeys(name for data in DATABASES.values() for name in data.profiles))
_ONSETS = tuple(dict.fromkeys(name for data in DATABASES.values() for name in data.definitions))
_EACH = "; ".join(f"{data.label}: {', '.join(data.profiles)}" for data in DATABASES.values())
_OTHERS = "; ".join(
    f"{data.label}: {', '.join(data.definitions)}"
    for data in DATABASES.values()
    if data.definitions
)

if TYPE_CHECKING:
    ProfileName = str
    OnsetName = str
else:
    ProfileName, OnsetName = Literal[_PROFILES], Literal[_ONSETS]
    """Names on the command line; which of them a database has is checked when it is known."""


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
        Literal["1h", "2h", "4h"],
        typer.Option(help="Length of a step; shorter ones exclude their right edge."),
    ] = "4h",
    onset: Annotated[
        OnsetName | None,
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
    require_place(out, manifest_name=MANIFEST, overwrite=overwrite)
    with (
        progress_bar() as progress,
        resumable_source(source, out=out, engine=engine, memory_limit=memory) as opened,
    ):
        changes = steps_of_hours(int(step[0])) | ({"onset": onset} if onset else {})
        extraction = extract(opened, profile, changes)
        built = build_cohort(extraction, progress=progress)
        progress("writing", 0.95)
        save_trajectories(to_trajectories(built), out, overwrite=overwrite, beside=built.files())
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
    checks = compare(Evidence.read(folder))
    rows = [_row(check, as_json=as_json) for check in checks]
    show(f"{folder} against what is published", rows, as_json=as_json)
    if not as_json:
        typer.echo(count_outcomes(checks))


def _row(check: Check, *, as_json: bool) -> dict[str, object]:
    target, low, high, outcome = check.target, check.low, check.high, check.outcome.value
    if as_json:
        return {
            "quantity": check.quantity,
            "target": target,
            "low": low,
            "high": high,
            "found": None if check.tells_few else check.found,
            "outcome": outcome,
        }
    accepted = "-"
    if target is not None and low is not None and high is not None:
        above, below = high - target, target - low
        accepted = f"{_digits(low)} to {_digits(high)}"
        if above == below == 0:
            accepted = "exactly"
        elif abs(above - below) <= 1e-9 * max(abs(target), 1.0):
            accepted = f"± {_digits(float(f'{above:.3g}'))}"
    return {
        "quantity": check.quantity,
        "target": _digits(target),
        "accepted": accepted,
        "found": "not shown" if check.tells_few else _digits(check.found),
        "outcome": outcome,
    }


def _digits(value: float | None) -> str:
    """Five digits, but of a large number every digit before the point: counts are exact."""
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 10_000 else f"{value:.5g}"


def count_outcomes(checks: Sequence[Check]) -> str:
    """How many figures came to what, in one line."""
    found = [check.outcome for check in checks]
    parts = [f"{found.count(own)} {own.value}" for own in Outcome if own in found]
    return f"{len(checks)} figures: {', '.join(parts)}."


def funnel_rows(built: Cohort) -> list[dict[str, object]]:
    """The funnel as rows, without a count of fewer than eleven people or one that tells it."""
    funnel, shown = built.funnel, built.funnel.shown
    stages = [(stage.name, stage.n_stays) for stage in funnel.stages]
    sizes = [("rows (stay and step)", funnel.n_rows)]
    sizes += [(f"decisions, reading {name}", count) for name, count in funnel.n_samples.items()]
    kept = (*shown.stages, shown.rows, *shown.samples)
    hidden = [FEW if are_few(count or 0) else "not shown" for _, count in [*stages, *sizes]]
    return [
        {"step": name, "count": words if count is None else count}
        for (name, _), count, words in zip([*stages, *sizes], kept, hidden, strict=True)
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
    """What the audit found, in two lines, and a third if rows of known items were not read."""
    odd = [item for item in built.units if item.n_unexpected]
    missing = {name: share or 0.0 for name, share in built.funnel.missing_share.items()}
    worst = sorted(missing, key=lambda name: -missing[name])[:3]
    lines = [
        f"units: {_rows(sum(item.n_unexpected for item in odd))} rows of {len(odd)} items, of "
        f"{len(built.units)} items read, are in an unexpected unit; see audit.json",
        "missing before imputation, most: "
        + ", ".join(f"{name} {missing[name]:.0%}" for name in worst),
    ]
    unread = sum(item.n_rows for item in built.unread)
    if unread:
        of_items = f"{_rows(unread)} rows of {len(built.unread)} items"
        lines.append(f"known and not read: {of_items}; see audit.json")
    return "\n".join(lines)


def _rows(count: int) -> str:
    return FEW if are_few(count) else f"{count:,}"
