"""`etips evaluate`: the risk of one or more policies on logged decisions."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from etips.cli.arguments import takes_columns
from etips.cli.console import JsonFlag, SeedOption, figure, progress_bar, say, show, standing
from etips.cli.run_data import AskedPolicies, RuleOption, RulesOption, RunsArgument, SeenFlag
from etips.data.tables.table_spec import TableSpec
from etips.evaluation.estimators import BESIDE, ESTIMATORS
from etips.files.json_documents import canonical, read_document
from etips.files.writing import write_file
from etips.results.conclusions import better_words
from etips.results.records import ONE_DECISION, DataSummary, MethodResult
from etips.results.results import Results

if TYPE_CHECKING:
    from etips.learn.training.epoch_report import EpochReport

_ESTIMATORS = f"By comma, the headline first: {', '.join(ESTIMATORS)}."
_BESIDE = [name for name in BESIDE if name != next(iter(ESTIMATORS))]  # three would be too wide
OutOption = Annotated[
    Path | None,
    typer.Option(help="File for the results. Left out, one run keeps them as results.json."),
]


@takes_columns
def evaluate(
    paths: RunsArgument,
    columns: TableSpec,
    rule: RuleOption = None,
    rules: RulesOption = None,
    estimators: Annotated[str | None, typer.Option(help=_ESTIMATORS)] = None,
    out: OutOption = None,
    whole_stay: Annotated[
        bool, typer.Option("--whole-stay", help="Also had the policy decided throughout the stay.")
    ] = False,
    outcome: Annotated[
        Literal["sum", "last"],
        typer.Option(help="Of a whole stay: the sum of its losses, or the last one."),
    ] = "sum",
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
    asked = AskedPolicies.of(paths, rule, rules)
    with progress_bar() as progress:
        progress("reading", 0.0)
        stays = asked.read(columns, allow_seen=allow_seen)
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
            outcome=outcome,
            allow_seen=allow_seen,
            negative_control=columns.negative_control,
            choices={name: read_choice(run.choice) for name, run in asked.folders.items()},
            paths={name: run.read_path() for name, run in asked.folders.items()},
            settings=asked.settings,
            cohort=read_document(asked.data / "funnel.json"),
            report=_reporting(progress, stays.n_decisions),
        )
    text, runs = canonical(results.to_json()), list(asked.folders.values())
    place = runs[0].results if out is None and len(runs) == 1 else out
    if place is not None:
        write_file(place, text)
    if as_json:
        typer.echo(text.decode(), nl=False)
    else:
        _print(results)


def _reporting(
    progress: Callable[[str, float], None], n_decisions: int
) -> Callable[["EpochReport"], None]:
    """Shows how far the whole evaluation is, and how long the rest may take."""
    from etips.learn.fitting.stages import Training  # noqa: PLC0415  # with torch
    from etips.studies.fit_work import FitClock, evaluation_works  # noqa: PLC0415

    clock = FitClock(evaluation_works(Training(), n_decisions))

    def report(at: "EpochReport") -> None:
        now, share = clock.read(at)
        progress(standing(now), share)

    return report


def _print(results: Results) -> None:
    from etips.report.finding import hidden_confounding, what_it_does  # noqa: PLC0415  # with jinja2

    data = results.data
    n, loss = data.n_decisions, data.mean_loss
    title = "Decisions (how many is hidden), " if n is None else f"{n:,} decisions, "
    title += f"mean logged loss {'hidden' if loss is None else format(loss, '.4f')}"
    show(title, [_row(method) for method in results.methods], as_json=False)
    if not data.one_decision:
        say(f"{ONE_DECISION}.")
    if data.loss is not None:
        say(data.loss)
    if results.shift is not None:
        for sentence in results.shift.sentences[:-2]:
            say(sentence)
    if data.missing_loss is not None:
        say(data.missing_loss.sentence)
    for method in results.methods:
        marks = f"{method.verdict}, in sample" if method.in_sample else method.verdict
        against, _, doubt = _against(method, data).partition("; ")
        does = what_it_does(results, method.name)
        named = method.name if does is None else f"{method.name}, {does}"
        say(f"{named} ({marks}): {against}")
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
    limits = f"[{figure(gain.low, '+.4f')}, {figure(gain.high, '+.4f')}]"
    return f"against the clinicians {gain.difference:+.4f} {limits}, {better_words(method, data)}"


def _row(method: MethodResult) -> dict[str, object]:
    """A line narrow enough for a terminal of eighty columns; the JSON has the rest."""
    head, *others = method.estimates
    factor = None if method.diagnostics is None else method.diagnostics.matching_factor
    return {
        "policy": method.name,
        head.estimator: f"{figure(head.risk)} [{figure(head.low)}, {figure(head.high)}]",
        **{other.estimator: figure(other.risk) for other in others if other.estimator in _BESIDE},
        "factor": figure(factor, ".2f"),
        "verdict": method.verdict,
        **({} if method.truth is None else {"truth": f"{method.truth:.3f}"}),
    }
