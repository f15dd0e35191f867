"""`etips demo`: the whole job on data that ships with the package."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from etips.cli.console import JobsOption, JsonFlag, SeedOption, figure, progress_bar, show
from etips.cli.study_output import make_folder, write_study
from etips.results.records import MethodResult
from etips.runs.tasks import jobs_for
from etips.studies.experiment import read_experiment, shipped
from etips.studies.study import run_study

_WORK = "work"
"""Folder of unfinished work beside the results; an interrupted demo goes on from it."""


def demo(
    out: Annotated[Path, typer.Option(help="Folder for report.html and results.json.")] = Path(
        "demo"
    ),
    stays: Annotated[int, typer.Option(min=60, help="How many stays to simulate.")] = 6000,
    jobs: JobsOption = None,
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Simulate ICU-Sepsis stays, learn every policy, evaluate it, and compare with the truth.

    The risk is the chance that the SOFA score does not improve after a decision; lower is better.
    Interrupted, the same command goes on where it stopped.
    """
    folder = make_folder(out)
    experiment = read_experiment(shipped("demo"), name="demo", n=stays, seed=seed)
    with progress_bar() as progress:
        result = run_study(
            experiment,
            make_folder(folder / _WORK),
            jobs=jobs or jobs_for("auto"),
            report=progress,
            announce=lambda line: typer.echo(f"etips demo: {line}", err=True),
        )
        progress("writing", 1.0)
        write_study(result, folder)
        shutil.rmtree(folder / _WORK)
    n, loss = result.data.n_decisions or 0, figure(result.data.mean_loss, ".4f")
    rows = [_row(method) for method in result.methods]
    show(f"{n:,} decisions, mean logged loss {loss}", rows, as_json=as_json)
    if not as_json:
        for line in _conclusion(result.methods, loss, out):
            typer.echo(line)


def _row(method: MethodResult) -> dict[str, object]:
    head, diagnostics = method.estimates[0], method.diagnostics
    return {
        "policy": method.name,
        "estimated risk": f"{figure(head.risk)} [{figure(head.low)}, {figure(head.high)}]",
        "verdict": method.verdict,
        "factor": figure(None if diagnostics is None else diagnostics.matching_factor, ".2f"),
        "true risk": figure(method.truth, ".4f"),
    }


def _conclusion(methods: Sequence[MethodResult], logged: str, out: Path) -> list[str]:
    """What was found, how honest the estimates were, what stays come to, what to open."""
    risks = {method.name: method.truth for method in methods if method.truth is not None}
    best = min(risks, key=lambda name: risks[name])
    trusted = [method for method in methods if method.verdict == "reliable"]
    return [
        f"Least true risk: {best}, {risks[best]:.4f}; the clinicians had {logged}.",
        f"{sum(map(_covers, methods))} of {len(methods)} intervals hold the truth; of the "
        f"{len(trusted)} called reliable, {sum(map(_covers, trusted))} do.",
        *(f"{m.name}. {m.whole_stay.sentence}" for m in methods if m.whole_stay is not None),
        f"Open {out / 'report.html'} to look at it, or read {out / 'results.json'}.",
    ]


def _covers(method: MethodResult) -> bool:
    low, high = method.estimates[0].low, method.estimates[0].high
    if low is None or high is None or method.truth is None:
        return False
    return low <= method.truth <= high
