"""`etips demo`: the whole job on data that ships with the package."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from etips.cli.console import JsonFlag, SeedOption, progress_bar, refusals, show
from etips.cli.reproduce import make_folder, write_study
from etips.studies.experiment import read_experiment, shipped
from etips.studies.study import run_study
from etips.tasks.task import jobs_for

_WORK = "work"
"""Folder of unfinished work beside the results; an interrupted demo goes on from it."""

Method = Mapping[str, Any]


def demo(
    out: Annotated[Path, typer.Option(help="Folder for report.html and results.json.")] = Path(
        "demo"
    ),
    stays: Annotated[int, typer.Option(min=60, help="How many stays to simulate.")] = 6000,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Tasks at a time; as suits the machine if left out.")
    ] = None,
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Simulate ICU-Sepsis stays, learn every policy, evaluate it, and compare with the truth.

    The risk is the chance that the SOFA score does not improve after a decision; lower is better.
    Interrupted, the same command goes on where it stopped.
    """
    with refusals("etips demo"):
        folder = make_folder(out)
        experiment = read_experiment(shipped("demo"), name="demo", n=stays, seed=seed)
        with progress_bar() as progress:
            document = run_study(
                experiment,
                make_folder(folder / _WORK),
                jobs=jobs or jobs_for("auto"),
                report=progress,
            )
            progress("writing", 1.0)
            write_study(document, folder)
            shutil.rmtree(folder / _WORK)
        rows = [_row(method) for method in document["methods"]]
        data = document["data"]
        title = f"{data['n_decisions']:,} decisions, mean logged loss {data['mean_loss']:.4f}"
        show(title, rows, as_json=as_json)
        if not as_json:
            for line in _conclusion(document["methods"], data["mean_loss"], out):
                typer.echo(line)


def _row(method: Method) -> dict[str, object]:
    head = method["estimates"][0]
    limits = f"[{_number(head['low'])}, {_number(head['high'])}]"
    return {
        "policy": method["name"],
        "estimated risk": f"{_number(head['risk'])} {limits}",
        "verdict": method["verdict"],
        "factor": _number(method["diagnostics"]["matching_factor"], 2),
        "true risk": _number(method["truth"], 4),
    }


def _conclusion(methods: Sequence[Method], logged: float, out: Path) -> list[str]:
    """Three lines: what was found, how honest the estimates were, what to open."""
    best = min(methods, key=lambda method: method["truth"])
    inside = sum(_covers(method) for method in methods)
    trusted = [method for method in methods if method["verdict"] == "reliable"]
    sound = sum(_covers(method) for method in trusted)
    return [
        f"Least true risk: {best['name']}, {best['truth']:.4f}; the clinicians had {logged:.4f}.",
        f"{inside} of {len(methods)} intervals hold the truth; of the {len(trusted)} called "
        f"reliable, {sound} do.",
        f"Open {out / 'report.html'} to look at it, or read {out / 'results.json'}.",
    ]


def _covers(method: Method) -> bool:
    head = method["estimates"][0]
    if head["low"] is None or head["high"] is None:
        return False
    return bool(head["low"] <= method["truth"] <= head["high"])


def _number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
