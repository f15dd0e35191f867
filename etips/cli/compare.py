"""`etips compare`: differences between policies, rules and what was done, and between places."""

from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from etips.cli.columns import takes_columns
from etips.cli.console import JsonFlag, SeedOption, progress_bar, refusals, say, show
from etips.cli.external_data import join_external, require_one_way
from etips.cli.place_column import read_places
from etips.cli.policy_options import AskedPolicies, RuleOption, RulesOption, SeenFlag
from etips.data.tables.columns import TableColumns
from etips.files.json_documents import canonical
from etips.results.comparison_result import (
    CLINICIANS,
    CarriedResult,
    Comparison,
    Figure,
    PlacesResult,
)
from etips.results.text_forest import Bar, draw_bars
from etips.results.whole_stay_result import ONE_DECISION

RunsArgument = Annotated[
    list[Path], typer.Argument(help="Run folders, if any, then the data: RUN [RUN ...] DATA.")
]
ByOption = Annotated[
    str | None, typer.Option(help="Column: compare sites, wards or years (of a time) as well.")
]
ReferenceOption = Annotated[
    str | None,
    typer.Option(help="Compare the others with this policy alone; clinicians: what was done."),
]
TargetOption = Annotated[
    str | None, typer.Option(help="With --by: carry figures over to this place's patients alone.")
]
ExternalOption = Annotated[
    Path | None,
    typer.Option(help="Folder of another source: compare both, and carry figures over."),
]
EstimatorOption = Annotated[str | None, typer.Option(help="Of all risks.")]
OutOption = Annotated[
    Path | None, typer.Option(help="Page to write (.html), or all figures (.json).")
]


@takes_columns
def compare(
    paths: RunsArgument,
    columns: TableColumns,
    rule: RuleOption = None,
    rules: RulesOption = None,
    by: ByOption = None,
    reference: ReferenceOption = None,
    target: TargetOption = None,
    external: ExternalOption = None,
    estimator: EstimatorOption = None,
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
    with refusals("etips compare"):
        if out is not None:
            _page().require_ending(out)
        require_one_way(by, external)
        asked = AskedPolicies.of(paths, rule, rules, least=0 if by or external else 1)
        with progress_bar() as progress:
            progress("reading", 0.1)
            stays = asked.read(columns, allow_seen=allow_seen)
            places = None if by is None else read_places(asked.data, columns, stays, by)
            joined = join_external(asked, stays, external, allow_seen=allow_seen, places=places)
            from etips.results.compare_policies import compare as compare_policies  # noqa: PLC0415
            from etips.results.evaluation_log import Models  # noqa: PLC0415

            progress("fitting what the estimators need", 0.3)
            comparison = compare_policies(
                asked.policies or None,
                joined.stays,
                by=joined.places,
                reference=reference,
                target=target,
                estimator=estimator,
                models=Models(seed=seed),
                allow_seen=allow_seen,
                settings=asked.told,
                sources=joined.sources,
            )
        _show(comparison, out, as_json=as_json)


def _show(comparison: Comparison, out: Path | None, *, as_json: bool) -> None:
    if out is not None:
        _page().write_comparison(comparison, out)
    if as_json:
        typer.echo(canonical(comparison.to_json()).decode(), nl=False)
        return
    _print(comparison)


def _page() -> ModuleType:
    """What writes a page, with jinja2; a refusal needs none."""
    from etips.report import comparison_page  # noqa: PLC0415

    return comparison_page


def _print(comparison: Comparison) -> None:
    n = comparison.data.n_decisions
    title = f"{'Few' if n is None else format(n, ',')} decisions; risk by {comparison.estimator}"
    rows: list[dict[str, object]] = [
        {
            "policy": own.name,
            "risk": _number(own.risk),
            "95 % interval": _span(own.risk),
            "verdict": "observed" if own.name == CLINICIANS else own.verdict,
        }
        for own in comparison.policies
    ]
    show(title, rows, as_json=False)
    if not comparison.data.one_decision:
        say(f"{ONE_DECISION}.")
    if comparison.pairs:
        _print_pairs(comparison)
    if comparison.places is not None:
        _print_places(comparison.places)


def _print_pairs(comparison: Comparison) -> None:
    bars = []
    for pair in comparison.pairs:
        p = "" if pair.adjusted_p is None else f" (p {pair.adjusted_p:.3f} after Holm)"
        apart, words = pair.difference, f"{pair.words}{p}"
        label = f"{pair.first} - {pair.second}"
        bars.append(Bar(label, apart.value, apart.low, apart.high, words))
    typer.echo("")
    for line in draw_bars(bars):
        typer.echo(line)
    for own in comparison.policies:
        for reason in own.reasons:
            say(f"why {own.name} is {own.verdict}: {reason}")
    told = {reason for pair in comparison.pairs for reason in pair.reasons}
    for reason in sorted(own for own in told if not own.startswith("The risk of ")):
        say(reason, indent=2)


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
                    "policy": own.policy,
                    "risk": _number(own.risk),
                    "change": _signed(own.difference),
                    "verdict": "observed" if own.policy == CLINICIANS else own.verdict,
                }
            )
    typer.echo("")
    show(f"By {places.column}", rows, as_json=False)
    for alike in places.alike:
        whose = "what was done" if alike.policy == CLINICIANS else f"what {alike.policy} changes"
        p = "-" if alike.adjusted_p is None else f"{alike.adjusted_p:.3f}"
        q = "-" if alike.q is None else f"{alike.q:.1f}"
        say(f"{whose}: {alike.words} (Q {q} on {alike.freedom}, p {p} after Holm)")
    for overlap in places.overlaps:
        typer.echo(
            f"{overlap.source} to {overlap.target}, overlap {overlap.overlap}: {overlap.words}"
        )
        for moved in places.carried:
            if (moved.source, moved.target) == (overlap.source, overlap.target):
                _print_carried(moved)


def _print_carried(moved: CarriedResult) -> None:
    if moved.carried.value is None:
        return
    left = f"; left {_signed(moved.remaining)} [{_limits(moved.remaining)}]"
    here, there = _number(moved.here), _number(moved.there)
    typer.echo(f"  {moved.policy}: {here} here, {_number(moved.carried)} with their patients,")
    typer.echo(f"    {there} there{left}")


def _number(figure: Figure) -> str:
    return "-" if figure.value is None else f"{figure.value:.4f}"


def _signed(figure: Figure) -> str:
    return "-" if figure.value is None else f"{figure.value:+.4f}"


def _span(figure: Figure) -> str:
    if figure.low is None or figure.high is None:
        return "-"
    return f"{figure.low:.4f} to {figure.high:.4f}"


def _limits(figure: Figure) -> str:
    if figure.low is None or figure.high is None:
        return "-"
    return f"{figure.low:+.4f}, {figure.high:+.4f}"
