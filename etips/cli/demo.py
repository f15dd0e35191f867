"""`etips demo`: the whole job on data that ships with the package."""

import time
from pathlib import Path
from typing import Annotated

import typer

from etips.cli.console import JsonFlag, SeedOption, progress_bar, refusals, show
from etips.data import Trajectories, split
from etips.data.files import canonical, write_file
from etips.errors import FileError
from etips.learn.simple import BestPossible, LoggingPolicy, MostFrequent, RandomPolicy
from etips.report.plain import results_page
from etips.worlds import icu_sepsis

_POLICIES = {
    "clinicians (true logging policy)": LoggingPolicy,
    "uniform": RandomPolicy,
    "most frequent action": MostFrequent,
    "best possible": BestPossible,
}


def demo(
    out: Annotated[Path, typer.Option(help="Folder for report.html and results.json.")] = Path(
        "demo"
    ),
    stays: Annotated[int, typer.Option(min=20, help="How many stays to simulate.")] = 20_000,
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Simulate ICU-Sepsis stays, apply policies and print their true risks.

    The risk is the chance that the SOFA score does not improve after a decision; lower is better.
    """
    with refusals("etips demo"):
        started = time.perf_counter()
        folder = _folder(out)
        with progress_bar() as progress:
            progress("simulating stays", 0.1)
            data = icu_sepsis.simulate(stays, seed=seed, lag=0)
            train, test = split(data, test=0.5, seed=seed)
            progress("applying policies", 0.6)
            risks = {
                name: test.true_risk(policy().fit(train).predict_proba(test))
                for name, policy in _POLICIES.items()
            }
        _write(folder, risks, data, time.perf_counter() - started)
        rows = [{"policy": name, "true risk": risk} for name, risk in risks.items()]
        show("ICU-Sepsis, true risk on held-out stays (lower is better)", rows, as_json=as_json)
        if not as_json:
            typer.echo(f"{data.n_decisions:,} decisions of {stays:,} simulated stays.")
            typer.echo(f"Open {out / 'report.html'} to look at it, or read {out / 'results.json'}.")


def _folder(out: Path) -> Path:
    if out.exists() and not out.is_dir():
        raise FileError(str(out), "exists and is not a folder")
    if not out.parent.is_dir():
        raise FileError(str(out.parent), "must be a folder that exists")
    out.mkdir(mode=0o700, exist_ok=True)
    return out


def _write(folder: Path, risks: dict[str, float], data: Trajectories, seconds: float) -> None:
    methods: list[dict[str, object]] = [
        {
            "name": name,
            "estimates": [],
            "diagnostics": None,
            "verdict": None,
            "reasons": [],
            "truth": risk,
        }
        for name, risk in risks.items()
    ]
    described: dict[str, object] = {
        "world": "icu-sepsis",
        "n_stays": data.n_stays,
        "n_decisions": data.n_decisions,
        "n_actions": data.n_actions,
        "lag": data.lag,
    }
    document = {"data": described, "methods": methods, "seconds": seconds}
    write_file(folder / "results.json", canonical(document))
    page = results_page(
        "True risk of four policies on ICU-Sepsis",
        f"{data.n_decisions:,} decisions of {data.n_stays:,} simulated stays. The risk is the "
        "chance that the SOFA score does not improve by the next step; lower is better. In this "
        "simulated world it is known exactly.",
        [{"policy": name, "true risk": risk} for name, risk in risks.items()],
        chart="true risk",
        footer="For research, not for clinical use. ICU-Sepsis: Choudhary, Gupta, Thomas, 2024.",
    )
    write_file(folder / "report.html", page.encode())
