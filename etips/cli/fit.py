"""`etips fit`: learn a policy from logged decisions."""

import time
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from etips.cli.columns import (
    ActionOption,
    DataArgument,
    GroupOption,
    LagOption,
    LossOption,
    PropensityOption,
    StaticOption,
    StayOption,
    StepOption,
    read_data,
)
from etips.cli.console import JsonFlag, OverwriteFlag, SeedOption, progress_bar, refusals, show
from etips.cli.methods import Method, make_learner
from etips.data import Trajectories
from etips.data.lock import NAME as LOCK
from etips.errors import FileError, SettingError
from etips.learn.fingerprint import fingerprint
from etips.learn.policy import FittedPolicy, fitted
from etips.learn.policy_files import MANIFEST, save_policy
from etips.learn.runs import CHECKPOINT, Run
from etips.learn.simple import MostFrequent
from etips.worlds.bandit import Progress


class Device(StrEnum):
    """Where to train."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


def fit(
    data: DataArgument,
    out: Annotated[Path, typer.Option(help="Run folder to write.")],
    method: Annotated[Method, typer.Option(help="Learner.")] = Method.ETIPS,
    stay: StayOption = None,
    step: StepOption = None,
    action: ActionOption = None,
    loss: LossOption = None,
    static: StaticOption = None,
    propensity: PropensityOption = None,
    group: GroupOption = None,
    lag: LagOption = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="key=value, repeatable: hidden=96, epochs=20, support=0.1."),
    ] = None,
    device: Annotated[Device, typer.Option(help="Where to train.")] = Device.AUTO,
    seed: SeedOption = 0,
    overwrite: OverwriteFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Learn a policy from logged decisions and write it as a run folder.

    Interrupted, the same command goes on where it stopped. Prints what was learnt; for etips and
    its kin every candidate translation with its held-out risk, matching factor and effective size.
    """
    with refusals("etips fit"):
        require_room(out, overwrite=overwrite)
        if not data.is_dir() and data.exists() and (action is None or loss is None):
            raise SettingError("--action, --loss", "must name columns: a table needs both")
        started = time.perf_counter()
        with progress_bar() as progress:
            progress("reading", 0.0)
            stays = read_data(
                data,
                stay=stay,
                step=step,
                action=action,
                loss=loss,
                static=static,
                propensity=propensity,
                group=group,
                lag=lag,
            )
            identity = fingerprint(
                data=stays, method=method.value, settings=set_ or [], device=device.value, seed=seed
            )
            with Run(out, identity) as run:
                policy, rows = _learn(stays, method, set_ or [], device.value, seed, progress, run)
                progress("writing", 1.0)
                # Already there if an earlier process was killed between writing and clearing.
                there = (out / "policy" / MANIFEST).is_file()
                save_policy(policy, out / "policy", overwrite=overwrite or there)
                run.clear()
        took = time.perf_counter() - started
        show(f"{method.value}, fitted in {took:.0f} s, in {out}", rows, as_json=as_json)


def require_room(out: Path, *, overwrite: bool) -> None:
    """Refuse before the work is done what could not be written after it."""
    if not out.parent.is_dir():
        raise FileError(str(out.parent), "must be a folder that exists")
    if not (out.exists() or out.is_symlink()):
        return
    if (out / CHECKPOINT).is_dir() and not out.is_symlink():
        return  # an interrupted run: the same command takes it up
    if out.is_dir() and all(path.name == LOCK for path in out.iterdir()):
        return  # empty, or killed before it had begun
    if not overwrite:
        raise FileError(str(out), "exists already", fix="Choose another, or --overwrite.")
    if not (out / "policy" / MANIFEST).is_file():
        raise FileError(str(out), "is not a run folder, so it stays", fix="Choose another.")


def _learn(
    stays: Trajectories,
    method: Method,
    settings: list[str],
    device: str,
    seed: int,
    progress: Progress,
    run: Run,
) -> tuple[FittedPolicy, list[Mapping[str, object]]]:
    """The policy, and what to print of it."""
    if settings and method in (Method.RANDOM, Method.MOST_FREQUENT):
        raise SettingError("--set", f"does not apply: {method.value} has no settings")
    if method is Method.RANDOM:
        policy = FittedPolicy("uniform", stays.schema)
        return policy, [{"policy": "every action alike"}]
    if method is Method.MOST_FREQUENT:
        action = MostFrequent().fit(stays).action_
        return FittedPolicy("constant", stays.schema, constant=action), [{"action": action}]
    learner = make_learner(method, settings, device=device, seed=seed)
    learner.fit(stays, report=lambda at: progress(f"epoch {at['epoch']:.0f}", 0.5), run=run)
    return fitted(learner), _rows(learner)


def _rows(learner: object) -> list[Mapping[str, object]]:
    path = getattr(learner, "path_", ())
    if path:
        return [
            {
                "candidate": f"translation {c.translation:g}"
                if c.action is None
                else f"always action {c.action}",
                "held-out SNIPS": c.risk,
                "std error": c.std_error,
                "matching factor": c.matching_factor,
                "effective size": round(c.effective_size),
                "chosen": "<-" if c.chosen else "",
            }
            for c in path
            if c.action is None or c.chosen
        ]
    quality = getattr(learner, "quality_", None)
    return [
        {
            "propensity accuracy": getattr(quality, "accuracy", float("nan")),
            "log-loss": getattr(quality, "log_loss", float("nan")),
            "calibration error": getattr(quality, "calibration_error", float("nan")),
            "support": getattr(learner, "support_", 0.0),
        }
    ]
