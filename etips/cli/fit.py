"""`etips fit`: learn a policy from logged decisions."""

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from etips.cli.columns import DataArgument, takes_columns
from etips.cli.console import JsonFlag, OverwriteFlag, progress_bar, refusals, show
from etips.cli.methods import MethodName, choose, make
from etips.data.missing_loss import count_missing_losses
from etips.data.tables.columns import TableColumns, as_read, read_data, require_log
from etips.files.fingerprint import fingerprint
from etips.learn.learners.learner import Learner
from etips.learn.nuisance.propensity import Quality
from etips.learn.training.epoch_report import EpochReport
from etips.results.exhibits import PathCandidate
from etips.results.translation_path import summarize_path
from etips.runs.file_names import CONFIG
from etips.runs.folder import RunFolder
from etips.runs.run import Run
from etips.runs.run_config import Device

ConfigOption = Annotated[
    Path | None, typer.Option(help=f"TOML file as a run's {CONFIG}; options go over it.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="key=value, repeatable: hidden=96, epochs=20, support=0.1."),
]
SeedOption = Annotated[
    int | None, typer.Option(help="Same seed, same result; 0 if left out.", min=0)
]


@takes_columns
def fit(
    data: DataArgument,
    out: Annotated[Path, typer.Option(help="Run folder to write.")],
    columns: TableColumns,
    config: ConfigOption = None,
    method: Annotated[MethodName | None, typer.Option(help="Learner; etips if left out.")] = None,
    set_: SetOption = None,
    device: Annotated[Device | None, typer.Option(help="Where to train; auto if left out.")] = None,
    seed: SeedOption = None,
    overwrite: OverwriteFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Learn a policy from logged decisions and write it as a run folder.

    Interrupted, the same command goes on where it stopped. Prints what was learned; for etips and
    its kin every candidate translation with its held-out risk, matching factor and effective size.
    """
    with refusals("etips fit") as tell_notes:
        folder = RunFolder(out)
        folder.require_room(overwrite=overwrite)
        told = choose(config, method, set_ or [], columns, device, seed)
        learner = make(told, set_ or [], config)
        roles = told.columns
        require_log(data, roles)
        started = time.perf_counter()
        with progress_bar() as progress:
            progress("reading", 0.0)
            stays = read_data(data, roles)
            tell_notes()  # before the long part
            told = replace(told, columns=as_read(roles, stays))
            content = fingerprint(data=stays)
            identity = fingerprint(data=content, recipe=told.recipe, device=told.device.value)
            with Run(out, identity) as run:
                learner.fit(stays, report=lambda at: progress(*standing(at)), run=run)
                progress("writing", 1.0)
                folder.write(
                    learner.policy_,
                    path=learner.path_,
                    config=told,
                    data=content,
                    overwrite=overwrite,
                )
                run.clear()
        took = time.perf_counter() - started
        title = f"{told.recipe.method}, fitted in {took:.0f} s, in {out}"
        show(title, _rows(learner), as_json=as_json)
        missing = count_missing_losses(stays)
        if missing is not None and not as_json:
            typer.echo(missing.tell())


def standing(at: EpochReport) -> tuple[str, float]:
    """What a training's report says in a line, and the share of its stage that is done.

    A narrow terminal cuts the line, so what matters least comes last.
    """
    words = [f"{at.stage}: epoch {at.epoch} of {at.epochs}", f"{at.seconds_left:.0f} s left"]
    words += [f"loss {at.loss:.4g}", f"held-out {at.held_out:.4g}"]
    if at.matching_factor is not None:
        words.append(f"factor {at.matching_factor:.4g}")
    return ", ".join(words), at.epoch / at.epochs


def _rows(learner: Learner) -> list[Mapping[str, object]]:
    if learner.path_:
        risk = "held-out SNIPS" if learner.fit_.outcome is None else "held-out risk"
        return [
            {
                "candidate": c.called,
                risk: math.nan if c.risk is None else c.risk,
                "std error": math.nan if c.std_error is None else c.std_error,
                "matching factor": c.matching_factor,
                "effective size": round(c.effective_size or 0),
                "chosen": "<-" if c.chosen else "",
                "after selection": _corrected(c),
            }
            for c in summarize_path(learner.path_)
            if c.action is None or c.chosen
        ]
    if learner.policy_.kind == "uniform":
        return [{"policy": "every action alike"}]
    if learner.policy_.kind == "constant":
        return [{"action": learner.policy_.constant}]
    quality = learner.quality_ or Quality(math.nan, math.nan, math.nan)
    return [
        {
            "propensity accuracy": quality.accuracy,
            "log-loss": quality.log_loss,
            "calibration error": quality.calibration_error,
            "support": learner.support_ or 0.0,
        }
    ]


def _corrected(candidate: PathCandidate) -> str:
    """The risk that choosing comes to, beside the one that the luckiest was chosen by."""
    if candidate.corrected is None or candidate.corrected_error is None:
        return ""
    return f"{candidate.corrected:.4f} +- {candidate.corrected_error:.4f}"
