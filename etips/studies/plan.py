"""Which tasks a study consists of, in waves: a wave needs what the waves before it left."""

from collections.abc import Container, Iterable, Mapping, Sequence

from etips.learn.learners.catalogue import find_method, require_method
from etips.learn.learners.recipes import make_learner
from etips.studies.experiment import EVALUATOR, SUPERVISED, Experiment, Settings, recipe_of
from etips.studies.fits import FitTask, FoldOfStudy
from etips.studies.folds import Dealing
from etips.studies.method_work import LearnerParts, stage_works
from etips.studies.outcome_fits import EvaluationTask
from etips.studies.study_data import DATA, DataTask, FolderData, SimulatedData, StudyData
from etips.tasks.task import Task

EVALUATION = "evaluation"
"""Name of the task that fits what policies are evaluated with."""

EVALUATING = {"table1": 0.01, "table2": 0.25}
"""Share of a study's time, on two cores, in which one process evaluates what all tasks found."""

_NOTHING, _THE_DATA = 0.1, 2.0  # in passes of a network over the stays, as `fit_cost` counts


def make_plan(
    experiment: Experiment, data: StudyData, *, device: str, external: FolderData | None = None
) -> list[list[Task]]:
    """The waves of a study.

    Args:
        experiment: What to study.
        data: Its own.
        device: Where to train.
        external: Another source that every policy is tested on too.
    """
    dealing = Dealing(experiment.table, experiment.folds, experiment.seed)
    evaluation = EvaluationTask(
        data, dealing, settings=experiment.evaluation, device=device, seed=experiment.seed
    )
    known = ("propensity",) if dealing.has_test_part else ()
    judging = fit_cost(EVALUATOR, experiment.evaluation, known)
    fits = {
        method: [
            _fit(experiment, method, FoldOfStudy(data, dealing, fold), device, external)
            for fold in range(experiment.folds)
        ]
        for method in experiment.methods
    }
    waves = [
        [Task(DATA, DataTask(data), _THE_DATA)],
        [*_of_wave(fits, 0), Task(EVALUATION, evaluation, judging)],
        _of_wave(fits, 1),
        _of_wave(fits, 2),
    ]
    # The longest of a wave come first, so that nobody waits for one of them at its end.
    return [sorted(wave, key=lambda task: -task.cost) for wave in waves if wave]


def _fit(
    experiment: Experiment,
    method: str,
    fold: FoldOfStudy,
    device: str,
    external: FolderData | None,
) -> Task:
    """The task of a method on one fold."""
    settings = experiment.methods[method]
    lent = lent_stages(experiment.methods, method)
    work = FitTask(
        fold,
        method,
        settings,
        device=device,
        seed=experiment.seed,
        turned=method in experiment.turned,
        lends=method in _lenders(experiment.methods),
        lent={stage: task_name(lender, fold.number) for stage, lender in lent.items()},
        external=external,
    )
    n = fold.data.n if isinstance(fold.data, SimulatedData) else None
    return Task(task_name(method, fold.number), work, fit_cost(method, settings, lent, n))


def fit_cost(
    method: str, settings: Settings, lent: Container[str], n_stays: int | None = None
) -> float:
    """How long a fit usually takes, in passes of a network over the stays.

    Args:
        method: Which.
        settings: Of it.
        lent: Stages that it takes over.
        n_stays: That it learns from, if that is known.
    """
    own = stage_works(recipe_of(method), settings, n_stays)
    return _NOTHING + sum(work.total for stage, work in own.items() if stage not in lent)


def task_name(method: str, fold: int) -> str:
    """Of a method's task on a fold."""
    return f"{method}-fold-{fold + 1}"


def lent_stages(methods: Mapping[str, Settings], method: str) -> dict[str, str]:
    """Stages of training that a method can take over, and from which method.

    Propensity networks fitted alike are the same for every method, and so are predicted losses.
    """
    if _rank(method) == 0 or method == SUPERVISED:
        return {}
    own = LearnerParts.of(make_learner(method, methods[method], device="cpu"))
    lent: dict[str, str] = {}
    for lender in _lenders(methods):
        if _rank(lender) >= _rank(method):
            continue
        theirs = LearnerParts.of(make_learner(lender, methods[lender], device="cpu"))
        wanted = require_method(method).stages
        stages = [stage for stage in require_method(lender).lends if stage in wanted]
        lent |= {stage: lender for stage in stages if own.is_like(theirs, stage)}
    return lent


def _lenders(methods: Iterable[str]) -> list[str]:
    """Those whose networks others begin with, in the order in which they are fitted."""
    lenders = [m for m in methods if (known := find_method(m)) is not None and known.lends]
    return sorted(lenders, key=_rank)


def _rank(method: str) -> int:
    """In which wave a method is fitted: lenders of propensities, then other lenders, then the rest.

    What takes no time goes with the first; full supervision, which nobody waits for, with the next.
    """
    known = find_method(method)
    if method == SUPERVISED:
        return 1
    if known is None or not known.stages or "propensity" in known.lends:
        return 0
    return 1 if known.lends else 2


def _of_wave(fits: Mapping[str, Sequence[Task]], wave: int) -> list[Task]:
    return [task for method, own in fits.items() if _rank(method) == wave for task in own]


def costs(
    waves: Sequence[Sequence[Task]],
    span: tuple[float, float] = (0.0, 1.0),
    *,
    evaluating: float = 0.0,
) -> list[float]:
    """Share of the whole that is done before each wave, and after all of them.

    Args:
        waves: The tasks.
        span: Share of the whole before them, and when everything is evaluated.
        evaluating: Share of that span that is left for the evaluation.
    """
    sums = [sum(task.cost for task in wave) for wave in waves]
    low, high = span[0], span[1] - evaluating * (span[1] - span[0])
    total = sum(sums) or 1.0
    done = [sum(sums[:place]) / total for place in range(len(sums))]
    return [low + (high - low) * share for share in done] + [high]
