"""`etips evaluate`: the risk of one or more policies on logged decisions."""

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from etips.cli.columns import takes_columns
from etips.cli.console import JsonFlag, SeedOption, progress_bar, refusals, say, show, standing
from etips.cli.run_data import AskedPolicies, RuleOption, RulesOption, RunsArgument, SeenFlag
from etips.data.tables.table_spec import TableSpec
from etips.evaluation.estimators import BESIDE, ESTIMATORS
from etips.files.json_documents import canonical, read_document
from etips.files.writing import write_file
from etips.machine import importing
from etips.results.conclusions import better_words
from etips.results.records import ONE_DECISION, DataSummary, MethodResult
from etips.results.results import Results

if TYPE_CHECKING:
    from etips.learn.training.epoch_report import EpochReport


class StayOutcome(Enum):
    """What becomes of a whole stay."""

    SUM = "sum"
    LAST = "last"


_BESIDE = [name for name in BESIDE if name != next(iter(ESTIMATORS))]  # three would be too wide


EstimatorsOption = Annotated[
    str | None, typer.Option(help=f"By comma, the headline first: {', '.join(ESTIMATORS)}.")
]
OutOption = Annotated[
    Path | None,
    typer.Option(help="File for the results. Left out, one run keeps them as results.json."),
]
WholeStayFlag = Annotated[
    bool, typer.Option("--whole-stay", help="Also had the policy decided throughout the stay.")
]
OutcomeOption = Annotated[
    StayOutcome, typer.Option(help="Of a whole stay: the sum of its losses, or the last one.")
]


@takes_columns
def evaluate(
    paths: RunsArgument,
    columns: TableSpec,
    rule: RuleOption = None,
    rules: RulesOption = None,
    estimators: EstimatorsOption = None,
    out: OutOption = None,
    whole_stay: WholeStayFlag = False,
    outcome: OutcomeOption = StayOutcome.SUM,
    allow_seen: SeenFlag = False,
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Estimate the risk of policies, each with interval, diagnosis and verdict.

    Stays that a policy learned from are refused. Lower risk is better; the mean logged loss is what
    the clinicians had. The risk is that of one decision changed, the rest as logged; where stays
    have several, "better" also asks for --whole-stay. It allows one false yes in twenty over all
    policies given together. Rules in SQL (--rule) are policies like any other. See `etips report`
    for a page to read.
    """
    with refusals("etips evaluate"):
        asked = AskedPolicies.of(paths, rule, rules)
        with progress_bar() as progress:
            progress("reading", 0.0)
            stays = asked.read(columns, allow_seen=allow_seen)
            with importing():
                from etips.results.evaluate import evaluate as evaluate_policies  # noqa: PLC0415
                from etips.results.evaluation_log import Models  # noqa: PLC0415
                from etips.results.parsing import read_choice  # noqa: PLC0415

            progress("fitting what the estimators need", 0.0)
            results = evaluate_policies(
                asked.policies,
                stays,
                estimators=tuple(estimators.split(",")) if estimators else (),
                models=Models(seed=seed),
                horizon="stay" if whole_stay else "decision",
                outcome=outcome.value,
                allow_seen=allow_seen,
                negative_control=columns.negative_control,
                choices={name: read_choice(run.choice) for name, run in asked.folders.items()},
                paths={name: run.read_path() for name, run in asked.folders.items()},
                settings=asked.told,
                cohort=read_document(asked.data / "funnel.json"),
                report=_reporting(progress, stays.n_decisions),
            )
        runs = list(asked.folders.values())
        place = runs[0].results if out is None and len(runs) == 1 else out
        if place is not None:
            write_file(place, canonical(results.to_json()))
        _print(results, as_json=as_json)


def _reporting(
    progress: Callable[[str, float], None], n_decisions: int
) -> Callable[["EpochReport"], None]:
    """Tells how far the whole evaluation is, and how long the rest may take."""
    from etips.learn.fitting.stages import Training  # noqa: PLC0415  # with torch
    from etips.studies.fit_work import FitClock, evaluation_works  # noqa: PLC0415

    clock = FitClock(evaluation_works(Training(), n_decisions))

    def tell(at: "EpochReport") -> None:
        now, share = clock.read(at)
        progress(standing(now), share)

    return tell


def _print(results: Results, *, as_json: bool) -> None:
    if as_json:
        typer.echo(canonical(results.to_json()).decode(), nl=False)
        return
    from etips.report.finding import hidden_confounding, what_it_does  # noqa: PLC0415  # with jinja2

    n, loss = results.data.n_decisions, results.data.mean_loss
    title = "Decisions (how many is hidden), " if n is None else f"{n:,} decisions, "
    title += f"mean logged loss {'hidden' if loss is None else format(loss, '.4f')}"
    show(title, [_row(method) for method in results.methods], as_json=False)
    if not results.data.one_decision:
        say(f"{ONE_DECISION}.")
    if results.data.loss is not None:
        say(results.data.loss)
    if results.shift is not None:
        for sentence in results.shift.sentences[:-2]:
            say(sentence)
    if results.data.missing_loss is not None:
        say(results.data.missing_loss.sentence)
    for method in results.methods:
        marks = f"{method.verdict}, in sample" if method.in_sample else method.verdict
        said, _, doubt = _against(method, results.data).partition("; ")
        does = what_it_does(results, method.name)
        named = method.name if does is None else f"{method.name}, {does}"
        say(f"{named} ({marks}): {said}")
        if doubt:
            say(f"{doubt[0].upper()}{doubt[1:]}.", indent=2)
        for reason in method.reasons:
            say(reason, indent=2)
        if method.gain is not None and (method.gain.difference or 0) < 0:
            say(hidden_confounding(method), indent=2)
        control = method.negative_control
        if control is not None and control.sentence not in method.reasons:
            say(control.sentence, indent=2)


def _against(method: MethodResult, data: DataSummary) -> str:
    """The policy against the clinicians; the verdict has a say in "better"."""
    gain = method.gain
    if gain is None or gain.difference is None:
        return "against the clinicians hidden or not known"
    limits = f"[{_number(gain.low, '+.4f')}, {_number(gain.high, '+.4f')}]"
    return f"against the clinicians {gain.difference:+.4f} {limits}, {better_words(method, data)}"


def _number(value: float | None, form: str = ".3f") -> str:
    return "-" if value is None else format(value, form)


def _row(method: MethodResult) -> dict[str, object]:
    """A line narrow enough for a terminal of eighty columns; the JSON has the rest."""
    head, *others = method.estimates
    row: dict[str, object] = {
        "policy": method.name,
        head.estimator: f"{_number(head.risk)} [{_number(head.low)}, {_number(head.high)}]",
    }
    row |= {e.estimator: _number(e.risk) for e in others if e.estimator in _BESIDE}
    factor = None if method.diagnostics is None else method.diagnostics.matching_factor
    row["factor"] = _number(factor, ".2f")
    row["verdict"] = method.verdict
    if method.truth is not None:
        row["truth"] = f"{method.truth:.3f}"
    return row
