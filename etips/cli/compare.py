"""`etips compare`: differences between policies, rules and what was done, and between places."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from etips.cli.arguments import takes_columns
from etips.cli.console import JsonFlag, SeedOption, figure, progress_bar, say, show
from etips.cli.run_data import AskedPolicies, RuleOption, RulesOption, RunsArgument, SeenFlag
from etips.data.alignment import join
from etips.data.intake.last_rows import visible_columns
from etips.data.tables.reading import read_by, read_data
from etips.data.tables.table_spec import TableSpec
from etips.data.trajectories import Trajectories
from etips.errors import DataError, EtipsError, FileError, SettingError
from etips.files.json_documents import canonical
from etips.notes import collecting_notes
from etips.results.comparison_result import (
    CLINICIANS,
    Bar,
    Comparison,
    Figure,
    PlacesResult,
    draw_bars,
)
from etips.results.groupings import column_values
from etips.results.records import ONE_DECISION

if TYPE_CHECKING:
    from etips.results.groupings import By

_RISK = ".4f"


ByOption = Annotated[
    str | None, typer.Option(help="Column: compare sites, wards or years (of a time) as well.")
]
ReferenceOption = Annotated[
    str | None,
    typer.Option(help="Compare the others with this policy alone; clinicians: what was done."),
]
TargetOption = Annotated[
    str | None,
    typer.Option(help="With --by: carry figures over to this place's patients alone."),
]
ExternalOption = Annotated[
    Path | None,
    typer.Option(help="Folder of another source: compare both, and carry figures over."),
]
OutOption = Annotated[
    Path | None, typer.Option(help="Page to write (.html), or all figures (.json).")
]


@takes_columns
def compare(
    paths: RunsArgument,
    columns: TableSpec,
    rule: RuleOption = None,
    rules: RulesOption = None,
    by: ByOption = None,
    reference: ReferenceOption = None,
    target: TargetOption = None,
    external: ExternalOption = None,
    estimator: Annotated[str | None, typer.Option(help="Of all risks.")] = None,
    out: OutOption = None,
    allow_seen: SeenFlag = False,
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Compare policies, rules and what was done: paired differences, corrected for their number.

    Left of zero the first of a pair has the lower risk. Holm's correction leaves one chance in
    twenty of any difference that is none. With --by COLUMN every figure is also given place by
    place, with a test of whether places differ, and with the case mix of another place. With
    --external FOLDER the places are the data and another source, read as the data are.
    """
    if out is not None:
        from etips.report.section import require_ending  # noqa: PLC0415  # with jinja2

        require_ending(out, ".html", ".json")
    if external is not None and by is not None:
        raise SettingError("--by, --external", "must not both be given")
    asked = AskedPolicies.of(paths, rule, rules, least=0 if by or external else 1)
    with progress_bar() as progress:
        progress("reading", 0.1)
        stays = asked.read(columns, allow_seen=allow_seen)
        places: By | None = None
        sources: NDArray[np.str_] | None = None
        if by is not None:
            places = read_places(asked.data, columns, stays, by)
        if external is not None:
            stays, sources = join_external(asked, stays, external, allow_seen=allow_seen)
            places = {"data": sources[stays.decisions().stay]}
        from etips.results.compare_policies import compare as compare_policies  # noqa: PLC0415
        from etips.results.evaluation_log import Models  # noqa: PLC0415

        progress("fitting what the estimators need", 0.3)
        comparison = compare_policies(
            asked.policies or None,
            stays,
            by=places,
            reference=reference,
            target=target,
            estimator=estimator,
            models=Models(seed=seed),
            allow_seen=allow_seen,
            settings=asked.settings,
            sources=sources,
        )
    if out is not None:
        from etips.report.comparison_page import write_comparison  # noqa: PLC0415  # with jinja2

        write_comparison(comparison, out)
    _print(comparison, as_json=as_json)


def read_places(data: Path, columns: TableSpec, stays: Trajectories, by: str) -> "By":
    """The column `by` if the data hold it, else its values at each decision by its name.

    It may be no feature, of a run or at all: the table is then read once more, for it alone.
    """
    if data.is_dir() or by in (*visible_columns(stays.schema), stays.schema.roles.step):
        return by
    with collecting_notes():  # what is remarked of a table has been told
        alone = _read_alone(data, columns, stays, by)
    if alone.n_stays > stays.n_stays:  # some were kept apart
        alone = alone.subset(np.isin(alone.stay, stays.stay))
    if not np.array_equal(alone.offsets, stays.offsets):
        rule = "cannot be matched with the stays"
        raise DataError(f"--by, column {by}", rule, fix="Make it a feature of the table.")
    # Without a log and a lag every step is a decision, so that values stand row by row.
    return {by: column_values(alone, by)[stays.decision_rows]}


def _read_alone(data: Path, columns: TableSpec, stays: Trajectories, by: str) -> Trajectories:
    """The same rows with this column as the only feature: once a stay, or else once a step."""
    recipe, roles = stays.schema.recipe, stays.schema.roles
    numbered = () if recipe is None else recipe.numbered
    named = {
        name: getattr(columns, name) or getattr(roles, name)
        for name in ("stay", "step")
        if name not in numbered
    }
    said = {k: v for k, v in columns.given.items() if k in ("every", "combine", "group")}
    if recipe is not None and recipe.every is not None:
        said["every"] = recipe.every.every
    alone = TableSpec(**{**said, **named, "features": (by,), "missing": "carry", "lag": 0})
    try:
        return read_by(data, alone.but(static=(by,)))
    except EtipsError as error:
        if "must not change within a stay" not in str(error):
            raise
    return read_by(data, alone)


def join_external(
    asked: AskedPolicies, stays: Trajectories, external: Path, *, allow_seen: bool
) -> tuple[Trajectories, NDArray[np.str_]]:
    """The stays of both sources, and where each is from; policies must not know the second."""
    if not external.is_dir():
        raise FileError(str(external), "must be a folder, such as `etips cohort` writes")
    other = read_data(external, TableSpec(), like=stays.schema)
    if asked.fitted and not allow_seen:
        from etips.results.followed_policies import require_unseen_stays  # noqa: PLC0415

        for part in (stays, other):  # by their own names, which a joined data set has not
            require_unseen_stays(asked.fitted, part)
    names = [path.resolve().name for path in (asked.data, external)]
    if names[0] == names[1]:
        names = [str(path) for path in (asked.data, external)]
    return join(dict(zip(names, (stays, other), strict=True)))


def _print(comparison: Comparison, *, as_json: bool) -> None:
    if as_json:
        typer.echo(canonical(comparison.to_json()).decode(), nl=False)
        return
    n = comparison.data.n_decisions
    title = f"{'Few' if n is None else format(n, ',')} decisions; risk by {comparison.estimator}"
    rows: list[dict[str, object]] = [
        {
            "policy": own.name,
            "risk": figure(own.risk.value, _RISK),
            "95 % interval": _limits(own.risk),
            "verdict": "observed" if own.name == CLINICIANS else own.verdict,
        }
        for own in comparison.policies
    ]
    show(title, rows, as_json=False)
    if not comparison.data.one_decision:
        say(f"{ONE_DECISION}.")
    bars = []
    for pair in comparison.pairs:
        p = "" if pair.adjusted_p is None else f" (p {pair.adjusted_p:.3f} after Holm)"
        apart, label = pair.difference, f"{pair.first} - {pair.second}"
        bars.append(Bar(label, apart.value, apart.low, apart.high, f"{pair.words}{p}"))
    if bars:
        typer.echo("\n".join(["", *draw_bars(bars)]))
        for own in comparison.policies:
            for reason in own.reasons:
                say(f"why {own.name} is {own.verdict}: {reason}")
        reasons = {reason for pair in comparison.pairs for reason in pair.reasons}
        for reason in sorted(own for own in reasons if not own.startswith("The risk of ")):
            say(reason, indent=2)
    if comparison.places is not None:
        _print_places(comparison.places)


def _print_places(places: PlacesResult) -> None:
    rows: list[dict[str, object]] = []
    for place in places.places:
        if place.n_people is None:
            rows.append({places.column: place.level, "people": "hidden", "policy": "", "risk": "-",
                         "change": "-", "verdict": "-"})  # fmt: skip
        for own in place.figures:
            rows.append(
                {
                    places.column: place.level,
                    "people": format(place.n_people, ","),
                    "policy": own.name,
                    "risk": figure(own.risk.value, _RISK),
                    "change": figure(own.difference.value, "+.4f"),
                    "verdict": "observed" if own.name == CLINICIANS else own.verdict,
                }
            )
    typer.echo("")
    show(f"By {places.column}", rows, as_json=False)
    for alike in places.alike:
        whose = "what was done" if alike.policy == CLINICIANS else f"what {alike.policy} changes"
        p, q = figure(alike.adjusted_p), figure(alike.q, ".1f")
        say(f"{whose}: {alike.words} (Q {q} on {alike.freedom}, p {p} after Holm)")
    for overlap in places.overlaps:
        typer.echo(
            f"{overlap.source} to {overlap.target}, overlap {overlap.overlap}: {overlap.words}"
        )
        for moved in places.carried:
            of_pair = (moved.source, moved.target) == (overlap.source, overlap.target)
            if not of_pair or moved.carried.value is None:
                continue
            here, there, left = (
                figure(moved.here.value, _RISK),
                figure(moved.there.value, _RISK),
                moved.remaining,
            )
            carried = figure(moved.carried.value, _RISK)
            typer.echo(f"  {moved.policy}: {here} here, {carried} with their patients,")
            limits = _limits(left, "+.4f", ", ")
            typer.echo(f"    {there} there; left {figure(left.value, '+.4f')} [{limits}]")


def _limits(interval: Figure, form: str = _RISK, between: str = " to ") -> str:
    if interval.low is None or interval.high is None:
        return "-"
    return f"{interval.low:{form}}{between}{interval.high:{form}}"
