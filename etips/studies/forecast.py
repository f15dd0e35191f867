"""How long a study may take, from a short training on its own data and machine."""

import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from etips.data.trajectories import Trajectories
from etips.learn.fitting.prepare import choose_device
from etips.learn.learners.catalogue import require_method
from etips.learn.learners.recipes import make_learner, setting_kinds
from etips.learn.training.epoch_report import EpochReport
from etips.studies.experiment import Experiment, Settings
from etips.studies.folds import Dealing
from etips.studies.study_data import StudyData, open_log
from etips.tasks.task import Task, recorded

TELL_FROM = 600.0
"""Seconds; what takes less is not announced."""

_PROBE = "predictive"  # a method that trains one kind of network and nothing else
_STAYS, _EPOCHS, _FOLDS = 1_000, 4, 2  # of the short training: fewer fill no batch, and cost more


def forecast(
    experiment: Experiment,
    data: StudyData,
    waves: Iterable[Sequence[Task]],
    folder: Path,
    *,
    device: str,
    jobs: int,
) -> float | None:
    """Seconds that what is left of a study takes if no network stops early; None if not known.

    Passes of networks alone are counted: a study of few stays takes longer, since evaluating and
    starting processes weigh more there. The data must be there. A GPU is not asked: there a pass
    costs next to nothing and networks share it, so that passes tell little.

    Args:
        experiment: The study.
        data: Its own.
        waves: Its tasks.
        folder: Of the tasks, some of which may be done.
        device: Where it trains.
        jobs: Tasks at a time.
    """
    if choose_device(device).type != "cpu":
        return None
    left = [
        task.cost for wave in waves for task in wave if recorded(task, folder / task.name) is None
    ]
    settings = next((own for own in experiment.methods.values() if own), {})
    if sum(left) < _EPOCHS * _FOLDS:
        return None
    log = open_log(data, folder)
    part = log if log.n_stays <= _STAYS else log.subset(slice(0, _STAYS))
    dealing = Dealing(experiment.table, experiment.folds, experiment.seed)
    share = float(dealing.part(log, 0).learn.mean())  # of the stays, that a fold learns from
    per_pass = _seconds_a_pass(part, settings) * share * log.n_steps / part.n_steps
    hands = max(1, min(jobs, os.cpu_count() or 1, len(left)))
    return per_pass * max(sum(left) / hands, max(left))


def _seconds_a_pass(stays: Trajectories, settings: Settings) -> float:
    """Seconds that one network takes to read the stays once, as the later epochs show."""
    known = setting_kinds(require_method(_PROBE))
    shape = {key: value for key, value in settings.items() if key in known and "." not in key}
    short = {"epochs": _EPOCHS, "patience": _EPOCHS, "n_folds": _FOLDS}
    moments: list[float] = []

    def tell(_: EpochReport) -> None:
        moments.append(time.perf_counter())

    make_learner(_PROBE, {**shape, **short}, device="cpu").fit(stays, report=tell)
    epochs = max(len(moments) - 1, 1)
    return (moments[-1] - moments[0]) / epochs / (_FOLDS - 1)
