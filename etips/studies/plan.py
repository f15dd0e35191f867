"""Which tasks a study consists of, in waves: a wave needs what the waves before it left."""

from collections.abc import Container, Mapping, Sequence
from typing import Any

from etips.evaluation.log import PROPENSITY_FLOOR
from etips.learn.learners.recipes import make_learner
from etips.studies.experiment import LOGGING, SUPERVISED, Experiment, Settings, recipe_of
from etips.studies.study_data import DATA
from etips.tasks.task import Task

EVALUATION = "evaluation"
"""Name of the task that fits what policies are evaluated with."""

LENDERS = ("predictive", "direct")
"""Methods whose networks others begin with, so that they come first."""

_NOTHING, _THE_DATA = 0.1, 2.0  # in passes of a network over the stays, as `fit_cost` counts
_UNTRAINED = (LOGGING, "random", "most-frequent")


def make_plan(
    experiment: Experiment, source: Mapping[str, Any], *, device: str
) -> list[list[Task]]:
    """The waves of a study.

    Args:
        experiment: What to study.
        source: Its data.
        device: Where to train.
    """
    common = {"source": dict(source), "device": device, "seed": experiment.seed}
    dealt = {"table": experiment.table, "folds": experiment.folds, "seed": experiment.seed}
    evaluation = {**common, "part": dealt, "settings": dict(experiment.evaluation)}
    known = ("propensity", "pilot") if experiment.table == "table1" else ("pilot",)
    judging = fit_cost("direct", experiment.evaluation, known)
    fits = {
        method: [
            _fit(experiment, method, {**common, "part": {**dealt, "fold": fold}})
            for fold in range(experiment.folds)
        ]
        for method in experiment.methods
    }
    waves = [
        [Task(DATA, "make-data", {"source": dict(source)}, _THE_DATA)],
        [*_of_wave(fits, 0), Task(EVALUATION, "fit-evaluation", evaluation, judging)],
        _of_wave(fits, 1),
        _of_wave(fits, 2),
    ]
    # The longest of a wave come first, so that nobody waits for one of them at its end.
    return [sorted(wave, key=lambda task: -task.cost) for wave in waves if wave]


def _fit(experiment: Experiment, method: str, common: Mapping[str, Any]) -> Task:
    """The task of a method on one fold; `common` is what it shares with other methods there."""
    settings, fold = experiment.methods[method], common["part"]["fold"]
    lent = lent_stages(experiment.methods, method)
    arguments = {
        **common,
        "method": method,
        "settings": dict(settings),
        "turned": method in experiment.turned,
        "lends": method in LENDERS,
        "lent": {stage: task_name(lender, fold) for stage, lender in lent.items()},
    }
    return Task(task_name(method, fold), "fit-fold", arguments, fit_cost(method, settings, lent))


def fit_cost(method: str, settings: Settings, lent: Container[str]) -> float:
    """How long a fit takes, in passes of a network over the stays, if no network stops early.

    Args:
        method: Which.
        settings: Of it.
        lent: Stages that it takes over.
    """
    if method in _UNTRAINED:
        return _NOTHING
    learner = _learner(recipe_of(method), settings)
    training = learner.training
    passes = {"propensity": training.propensity.epochs}
    if method in ("direct", "doubly-robust"):
        passes["outcome"] = training.outcome.epochs
    if method in ("ips", "tips", "eips", "etips"):
        passes["policy"] = training.policy.epochs * len(learner.translations)
    if method == "doubly-robust":
        passes["policy"] = training.policy.epochs
    if getattr(learner, "support", 0) is None:
        passes["pilot"] = 2 * training.policy.epochs
    # Of n folds every network reads all but one; of one fold, all but those it stops by.
    share = max(training.n_folds - 1, 1)
    own = [count for stage, count in passes.items() if stage not in lent]
    return _NOTHING + float(share * sum(own))


def task_name(method: str, fold: int) -> str:
    """Of a method's task on a fold."""
    return f"{method}-fold-{fold + 1}"


def lent_stages(methods: Mapping[str, Settings], method: str) -> dict[str, str]:
    """Stages of training that a method can take over, and from which method.

    Propensity networks fitted alike are the same for every method. So are the predicted losses, and
    the pilots that look for a floor of support, as long as the propensities are not known ones.
    """
    if method in (SUPERVISED, *_UNTRAINED):
        return {}
    found: dict[str, str] = {}
    for lender, stages in zip(LENDERS, (("propensity",), ("outcome", "pilot")), strict=True):
        if lender == method or lender not in methods:
            continue
        if method in LENDERS[: LENDERS.index(lender)]:
            continue  # it comes first
        own, theirs = _learner(method, methods[method]), _learner(lender, methods[lender])
        found |= {stage: lender for stage in stages if _alike(stage, own, theirs, method)}
    return found


def _alike(stage: str, own: Any, theirs: Any, method: str) -> bool:  # noqa: ANN401  # any learner
    """Whether the stage of one learner is that of the other."""
    same = own.encoder == theirs.encoder and all(
        getattr(own.training, name) == getattr(theirs.training, name)
        for name in ("n_folds", "earlier_actions", "propensity")
    )
    if stage == "propensity" or not same:
        return same
    if stage == "outcome":
        return method == "doubly-robust" and own.training.outcome == theirs.training.outcome
    unknown = getattr(own, "propensity", 0) is None and own.clip == PROPENSITY_FLOOR
    looked = own.support is None and theirs.support is None
    alike = (own.training.policy, own.training.calibrate) == (
        theirs.training.policy,
        theirs.training.calibrate,
    )
    return unknown and looked and alike


def _learner(method: str, settings: Settings) -> Any:  # noqa: ANN401  # of any class
    return make_learner(method, settings, device="cpu")


def _of_wave(fits: Mapping[str, Sequence[Task]], wave: int) -> list[Task]:
    """Tasks of the lenders first, then of those who borrow from one, then of the rest."""
    early = dict.fromkeys((*_UNTRAINED, LENDERS[0]), 0) | {SUPERVISED: 1, LENDERS[1]: 1}
    return [task for method, own in fits.items() if early.get(method, 2) == wave for task in own]


def costs(waves: Sequence[Sequence[Task]]) -> list[float]:
    """Share of the whole that is done before each wave, and 1 at the end."""
    sums = [sum(task.cost for task in wave) for wave in waves]
    total = sum(sums) or 1.0
    return [sum(sums[:place]) / total for place in range(len(sums))] + [1.0]
