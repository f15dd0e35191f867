"""What `etips fit` does once its data are read: the half that needs torch."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from etips.cli.methods import choose, make
from etips.data.splitting import held_out
from etips.data.tables.columns import TableColumns
from etips.data.trajectories import Trajectories
from etips.disclosure import FEW, are_few, part_told
from etips.errors import SettingError
from etips.files.fingerprint import fingerprint
from etips.learn.learners.learner import Learner
from etips.learn.training.epoch_report import EpochReport
from etips.notes import note
from etips.results.path_candidate import PathCandidate
from etips.results.translation_path import summarize_path
from etips.runs.device import Device
from etips.runs.folder import RunFolder
from etips.runs.run import Run
from etips.studies.fit_clock import FitClock
from etips.studies.method_work import stage_works
from etips.studies.stage_work import with_trees


@dataclass(frozen=True)
class Told:
    """What the command line says beside the places.

    Args:
        config: File that the options go over.
        method: Learner.
        settings: Entries `key=value`.
        columns: How the data were read.
        device: Where to train.
        seed: Of everything.
        hold_out: Share of the stays to be kept apart.
    """

    config: Path | None
    method: str | None
    settings: tuple[str, ...]
    columns: TableColumns
    device: Device | None
    seed: int | None
    hold_out: float | None = None


@dataclass(frozen=True)
class Fitted:
    """A learner that has learned.

    Args:
        method: Its name.
        learner: The learner.
        stays: What it learned from.
    """

    method: str
    learner: Learner
    stays: Trajectories

    def rows(self) -> list[Mapping[str, object]]:
        """What was learned, a row each."""
        return _rows(self.learner)


def fit_run(
    stays: Trajectories,
    out: Path,
    told: Told,
    *,
    overwrite: bool,
    report: Callable[[EpochReport, float], None],
) -> Fitted:
    """Learn a policy and write its run folder.

    Args:
        stays: What to learn from.
        out: Where the folder is to be.
        told: How to learn.
        overwrite: Replace an earlier run.
        report: Hears how a training stands, with the time left of the whole, and which share of
            the whole is done.
    """
    chosen = choose(
        *(told.config, told.method, told.settings, told.columns, told.device, told.seed),
        told.hold_out,
    )
    if chosen.hold_out is not None:
        stays = _without(stays, chosen.hold_out)
    learner = make(chosen, told.settings, told.config)
    content = fingerprint(data=stays)
    identity = fingerprint(data=content, recipe=chosen.recipe, device=chosen.device.value)
    own = chosen.recipe
    works = stage_works(own.method, own.settings, stays.n_stays)
    if "propensity" in works:
        works["propensity"] = with_trees(works["propensity"], stays)
    clock = FitClock(works)
    with Run(out, identity) as run:
        learner.fit(stays, report=lambda at: report(*clock.read(at)), run=run)
        RunFolder(out).write(
            learner.policy_,
            path=learner.path_,
            config=chosen,
            data=content,
            overwrite=overwrite,
        )
        run.clear()
    return Fitted(chosen.recipe.method, learner, stays)


def _without(stays: Trajectories, share: float) -> Trajectories:
    """All but those kept apart, and a line that says how many there are."""
    apart = held_out(stays, share)
    n_apart = int(apart.sum())
    if not 0 < n_apart < stays.n_stays:
        raise SettingError("--hold-out", "must leave stays on both sides; there are too few")
    note(
        f"{part_told(n_apart, stays.n_stays, 'stays')} were kept apart (--hold-out {share:g}): "
        "`etips evaluate` of the same data judges the run on those"
    )
    return stays.subset(~apart)


def _rows(learner: Learner) -> list[Mapping[str, object]]:
    names = learner.policy_.schema.actions
    if learner.path_:
        risk = "held-out SNIPS" if learner.fit_.outcome is None else "held-out risk"
        return [
            {
                "candidate": c.called_with(names),
                risk: math.nan if c.risk is None else c.risk,
                "std error": math.nan if c.std_error is None else c.std_error,
                "matching factor": c.matching_factor,
                "effective size": FEW
                if are_few(c.effective_size or 0)
                else round(c.effective_size or 0),
                "chosen": "<-" if c.chosen else "",
                "after selection": _corrected(c),
            }
            for c in summarize_path(learner.path_)
            if c.action is None or c.chosen
        ]
    if learner.policy_.kind == "uniform":
        return [{"policy": "every action alike"}]
    if learner.policy_.kind == "constant":
        action = learner.policy_.constant or 0
        return [{"policy": f"always {names[action] if names else f'action {action}'}"}]
    quality = learner.quality_
    if quality is None:  # no folds of its own, so nothing is known of stays not learned from
        return [{"policy": f"of {type(learner).__name__}", "support": learner.support_ or 0.0}]
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
