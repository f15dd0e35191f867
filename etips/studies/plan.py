"""Which tasks a study consists of, in waves: a wave needs what the waves before it left."""

from collections.abc import Container, Mapping
from dataclasses import replace

from etips.learn.fitting.stages import Training
from etips.learn.learners.catalogue import find_method, require_method
from etips.learn.learners.recipes import make_learner
from etips.runs.tasks import Task
from etips.studies.experiment import EVALUATOR, SUPERVISED, Experiment, Settings, recipe_of
from etips.studies.fit_work import stage_works
from etips.studies.fits import FitTask
from etips.studies.outcome_fits import EvaluationTask
from etips.studies.study_data import (
    DATA,
    DataTask,
    Dealing,
    FolderData,
    SimulatedData,
    StudyData,
)

EVALUATION = "evaluation"
"""Name of the task that fits what policies are evaluated with."""

EVALUATING = {"table1": 0.01, "table2": 0.25}
"""Share of a study's time, on two cores, in which one process evaluates what all tasks found."""

_NOTHING, _THE_DATA = 0.1, 2.0  # in passes of a network over the stays, as `fit_cost` counts


def make_plan(
    experiment: Experiment, data: StudyData, *, device: str, external: FolderData | None = None
) -> list[list[Task]]:
    """The waves of a study."""
    seed, methods = experiment.seed, experiment.methods
    dealing = Dealing(experiment.table, experiment.folds, seed)
    known = ("propensity",) if dealing.has_test_part else ()
    judging = Task(
        EVALUATION,
        EvaluationTask(data, dealing, experiment.evaluation, device=device, seed=seed),
        fit_cost(EVALUATOR, experiment.evaluation, known),
        device,
    )
    waves = [[Task(DATA, DataTask(data), _THE_DATA)], [judging], [], []]
    n_stays = data.n if isinstance(data, SimulatedData) else None
    for method, settings in methods.items():
        lent, entry = lent_stages(methods, method), find_method(method)
        work = FitTask(
            data,
            dealing,
            0,
            method,
            settings,
            device=device,
            seed=seed,
            turned=method in experiment.turned,
            lends=entry is not None and bool(entry.lends),
            external=external,
        )
        cost = fit_cost(method, settings, lent, n_stays)
        for fold in range(experiment.folds):
            lenders = {stage: task_name(lender, fold) for stage, lender in lent.items()}
            own = replace(work, fold=fold, lent=lenders)
            task = Task(task_name(method, fold), own, cost, device, tuple(lenders.values()))
            waves[1 + _rank(method)].append(task)
    # The longest of a wave come first, so that no worker waits for one of them at its end.
    return [sorted(wave, key=lambda task: -task.cost) for wave in waves if wave]


def fit_cost(
    method: str, settings: Settings, lent: Container[str], n_stays: int | None = None
) -> float:
    """How long a fit usually takes, in passes of a network over the stays.

    Args:
        method: A row of the table.
        settings: Of its learner.
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
    lent: dict[str, str] = {}
    entry = find_method(method)
    if method == SUPERVISED or entry is None:
        return lent
    for lender in sorted(methods, key=_rank):
        if lender == SUPERVISED or find_method(lender) is None or _rank(lender) >= _rank(method):
            continue
        for stage in require_method(lender).lends:
            if stage in entry.stages and _made_by(stage, lender, methods[lender]) == _made_by(
                stage, method, methods[method]
            ):
                lent[stage] = lender
    return lent


def _made_by(stage: str, method: str, settings: Settings) -> tuple[object, ...]:
    """What decides how a method trains a stage."""
    params = make_learner(method, settings, device="cpu").get_params(deep=False)
    training = params["training"]
    assert isinstance(training, Training)
    propensity = (
        params["encoder"],
        training.n_folds,
        training.earlier_actions,
        training.propensity,
    )
    if stage == "propensity":
        return propensity
    outcome = params.get("interaction", True), params.get("horizon", "decision"), training.outcome
    return *propensity, *outcome


def _rank(method: str) -> int:
    """In which wave a method is fitted: lenders of propensities, then other lenders, then the rest.

    What takes no time goes with the first; full supervision, which no other method needs, with the
    next.
    """
    known = find_method(method)
    if method == SUPERVISED:
        return 1
    if known is None or not known.stages or "propensity" in known.lends:
        return 0
    return 1 if known.lends else 2
