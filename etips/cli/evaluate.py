"""`etips evaluate`: the risk of one or more policies on logged decisions."""

from pathlib import Path
from typing import Annotated

import typer

from etips.cli.columns import (
    ActionOption,
    GroupOption,
    LagOption,
    LossOption,
    PropensityOption,
    StaticOption,
    StayOption,
    StepOption,
    read_data,
)
from etips.cli.console import JsonFlag, SeedOption, progress_bar, refusals, show
from etips.cli.recommend import open_run
from etips.data.files import canonical, write_file
from etips.errors import SettingError
from etips.evaluation.results import MethodResult, Results
from etips.study.evaluate import Models
from etips.study.evaluate import evaluate as evaluate_policies


def evaluate(
    paths: Annotated[
        list[Path], typer.Argument(help="Run folders, then the data: RUN [RUN ...] DATA.")
    ],
    stay: StayOption = None,
    step: StepOption = None,
    action: ActionOption = None,
    loss: LossOption = None,
    static: StaticOption = None,
    propensity: PropensityOption = None,
    lag: LagOption = None,
    cluster: GroupOption = None,
    estimators: Annotated[
        str | None,
        typer.Option(help="By comma, the headline first: snips, ips, dr, dm, sndr, switch_dr, ..."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Also write results.json here.")] = None,
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Estimate the risk of policies, each with interval, diagnosis and verdict.

    Use decisions that no policy learnt from. Lower risk is better; the mean logged loss is what the
    clinicians had. "Better" allows one false yes in twenty over all policies given together.
    """
    with refusals("etips evaluate"):
        if len(paths) < 2:
            raise SettingError("arguments", "must be RUN [RUN ...] DATA")
        *runs, data = paths
        policies = {str(run): open_run(run) for run in runs}
        with progress_bar() as progress:
            progress("reading", 0.1)
            stays = read_data(
                data,
                stay=stay,
                step=step,
                action=action,
                loss=loss,
                static=static,
                propensity=propensity,
                lag=lag,
                group=cluster,
                like=next(iter(policies.values())).schema,
            )
            progress("fitting what the estimators need", 0.3)
            names = tuple(estimators.split(",")) if estimators else ()
            results = evaluate_policies(policies, stays, estimators=names, models=Models(seed=seed))
        if out is not None:
            write_file(out, canonical(results.to_json()))
        _print(results, as_json=as_json)


def _print(results: Results, *, as_json: bool) -> None:
    if as_json:
        typer.echo(canonical(results.to_json()).decode(), nl=False)
        return
    data = results.data
    title = f"{data['n_decisions']:,} decisions, mean logged loss {data['mean_loss']:.4f}"
    show(title, [_row(method) for method in results.methods], as_json=False)
    for method in results.methods:
        gain = method.assessment.gain
        limits = f"{gain.difference:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}]"
        better = method.improvement is not None and method.improvement.better
        word = "better" if better else "not shown to be better"
        typer.echo(f"{method.name}: against the clinicians {limits}, {word}")
        for reason in method.assessment.verdict.reasons:
            typer.echo(f"  {reason}")
        if method.sensitivity is not None and gain.difference < 0:
            gamma = method.sensitivity.gamma_point
            typer.echo(
                f"  Hidden confounding with an odds ratio of {gamma:.2f} could undo the gain."
            )


def _row(method: MethodResult) -> dict[str, object]:
    """A line narrow enough for a terminal of eighty columns; the JSON has the rest."""
    found = method.assessment
    head, *others = found.estimates
    row: dict[str, object] = {
        "policy": method.name,
        head.estimator: f"{head.risk:.3f} [{head.low:.3f}, {head.high:.3f}]",
    }
    row |= {e.estimator: f"{e.risk:.3f}" for e in others if e.estimator in ("dr", "ips")}
    row["factor"] = f"{found.diagnostics.matching_factor.risk:.2f}"
    row["verdict"] = found.verdict.label
    if method.truth is not None:
        row["truth"] = f"{method.truth:.3f}"
    return row
