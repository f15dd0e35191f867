"""The log that an evaluation weighs with: propensities and predicted losses, known or fitted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np

from etips.data.decisions import Floats
from etips.data.splitting import assign_folds
from etips.data.trajectories import Trajectories
from etips.errors import SettingError, require
from etips.evaluation.inference.checks import check_probabilities
from etips.evaluation.log import PROPENSITY_FLOOR, Log
from etips.learn.fitting.prepare import choose_device, prepare
from etips.learn.fitting.stages import ENCODER, Training
from etips.learn.fitting.trainer import Trainer
from etips.learn.library import LOSSES, PROPENSITIES
from etips.learn.nuisance.outcome import SklearnOutcome
from etips.learn.nuisances import NETWORK, SECONDS, CrossFit, ModelPredictions, shares
from etips.learn.training.epoch_report import Report
from etips.models.encoders.registry import AnyEncoder
from etips.results.followed_policies import Policy, as_fitted

AGREEMENT = 1e-6
"""How far a known table and the propensity in the data may differ: both may have been rounded."""


Source = Literal["cross-fitted", "policy"]
"""Where propensities come from that nobody knows: models fitted on the evaluated stays, or those
that were fitted with the first policy that has some."""

SECONDS_A_DECISION = 1e-3
"""What models of rows together may take of one core, a decision: about twice what networks take.
Forests take part up to about 800 rows of ten columns; beyond, boosting does as well in a tenth of
the time."""

MODELS = (*(recipe.name for recipe in PROPENSITIES), NETWORK)
"""What is stacked, where its cost allows."""

CROSS_FITTED = "cross-fitted on the evaluated stays"

LEFT_OUT = "the error of the fitted propensities; that of sndr and dr holds it, but for small terms"
"""What the intervals of estimators without a model leave out where propensities are fitted."""


@dataclass(frozen=True)
class Models:
    """How an evaluation comes by propensities and predicted losses.

    Args:
        encoder: Of the networks fitted here.
        training: Of them; the folds are stays of the evaluated data.
        outcome: Predict losses, for the estimators that use them: True by a stack of models, or by
            a `SklearnOutcome`; False leaves those estimators out.
        clip: Propensities below this are raised to it.
        seed: Of all models.
        models: Names of those that may be stacked, some of `MODELS`; the dearest are left out
            where they would take long.
        propensity: Where propensities come from that nobody knows. "policy" takes those of the
            first policy that fitted some: the figures then depend on the order of the policies, and
            no interval knows the error of the propensities.
    """

    encoder: AnyEncoder = ENCODER
    training: Training = field(default_factory=Training)
    outcome: bool | SklearnOutcome = True
    clip: float = PROPENSITY_FLOOR
    seed: int = 0
    propensity: Source = "cross-fitted"
    models: Sequence[str] = MODELS

    def __post_init__(self) -> None:
        if not self.models or not set(self.models) <= set(MODELS):
            raise SettingError("models", f"must be some of {', '.join(MODELS)}")
        if self.propensity not in get_args(Source):
            raise SettingError("propensity", f"must be one of {', '.join(get_args(Source))}")

    @property
    def n_folds(self) -> int:
        """Parts of the evaluated stays; two at least, since none may be judged by itself."""
        return max(self.training.n_folds, 2)


@dataclass(frozen=True, eq=False)
class EvaluationLog:
    """The log, and where what it holds came from.

    Args:
        log: The decisions.
        notes: In words, for the record.
        fitted: Fitted propensities of all actions, to be looked at where the log uses known ones,
            shape (n_decisions, n_actions).
    """

    log: Log
    notes: Mapping[str, str]
    fitted: Floats | None


def make_log(
    policies: Mapping[str, Policy],
    data: Trajectories,
    models: Models,
    *,
    known: Floats | None = None,
    report: Report | None = None,
) -> EvaluationLog:
    """The decisions of `data` with what it takes to weigh them.

    Propensities are those in the data, or `known` of every action; else they are fitted as `models`
    say: cross-fitted on `data`, by stay, as predicted losses always are. `report` is called after
    every epoch of what is fitted.
    """
    fitted = {name: as_fitted(policy) for name, policy in policies.items()}
    names = [name for name, p in fitted.items() if p is not None and p.propensity is not None]
    fitted_policy = fitted[names[0]] if names else None
    by_design, source, table = known is not None or data.propensity is not None, "", None
    if known is not None:
        table, source = check_known(known, data), "known of every action, as given"
    elif data.propensity is not None:
        source = "known, from the data"
    elif models.propensity == "policy" and fitted_policy is not None:
        table = fitted_policy.propensities(data)
        source = f"fitted with the policy {names[0]}, on its training stays"
    propensities, predicted = _Stacked(table, source), _Stacked(by="none")
    if not source or models.outcome is True:
        stacked, predicted = _fit(data, models, propensities=not source, report=report)
        propensities = propensities if source else stacked
    if isinstance(models.outcome, SklearnOutcome):
        fold = assign_folds(data, n_folds=models.n_folds, seed=models.seed)
        predicted = _Stacked(models.outcome.cross_fit(data, fold), CROSS_FITTED)
    figures = {"propensities": propensities.table, "predicted": predicted.table}
    log = Log.of(data, **figures, floor=models.clip, known=by_design)
    if not by_design:  # with known propensities nothing hangs on the models
        log = log.beside(propensities.network, predicted.network)
    notes = {
        "propensities": propensities.by,
        "predicted losses": predicted.by,
        "clip": f"{log.propensity_floor:g}",
    }
    if not by_design:
        notes["intervals of snips and ips leave out"] = LEFT_OUT
    stated = None
    if data.propensity is not None and known is None and fitted_policy is not None:
        stated = fitted_policy.propensities(data)
    return EvaluationLog(log, notes, stated)


@dataclass(frozen=True, eq=False)
class _Stacked:
    """What models say of all actions, out of fold, shape (n_decisions, n_actions).

    Args:
        by: Which models, in words.
        network: The network alone, unless others have no weight beside it.
    """

    table: Floats | None = None
    by: str = ""
    network: Floats | None = None

    @classmethod
    def of(cls, table: Floats, each: Sequence[ModelPredictions], weights: Floats) -> "_Stacked":
        """The models that count are named, the most important first."""
        kept = sorted(shares(each, weights).items(), key=lambda pair: -pair[1])
        by = ", ".join(f"{name} {weight:.2g}" for name, weight in kept if weight)
        pairs = zip(each, weights, strict=True)
        alone = (model.table for model, weight in pairs if model.name == NETWORK and weight < 1)
        return cls(table, f"{CROSS_FITTED}: {by}", next(alone, None))


def _fit(
    data: Trajectories, models: Models, *, propensities: bool, report: Report | None
) -> tuple[_Stacked, _Stacked]:
    """Stacks of models of propensities and of losses, as far as they are wanted."""
    device = choose_device(models.training.device)
    prepared = prepare(data, n_folds=models.n_folds, seed=models.seed, device=device)
    with_network = NETWORK in models.models  # without it dear models may be all that there are
    log = CrossFit.of(
        prepared,
        Trainer(report=report),
        encoder=models.encoder,
        training=replace(models.training, calibrate=True),
        seed=models.seed,
        models=models.models,
        recipes=(*PROPENSITIES, *(recipe for recipe in LOSSES if recipe.target == "loss")),
        seconds=min(SECONDS_A_DECISION * data.n_decisions, SECONDS) if with_network else np.inf,
    )
    low, high = data.logged_loss.min(), data.logged_loss.max()

    def unscaled(standard: Floats) -> Floats:
        """Losses, which stay within those that were logged."""
        return np.asarray(np.clip(log.centre + log.unit * standard, low, high))

    chances, predicted = _Stacked(), _Stacked(by="none")
    try:
        losses = log.start_outcomes() if models.outcome is True else None
        if propensities:
            each, mixture, _ = log.propensities()
            chances = _Stacked.of(mixture.table, each, mixture.weights)
        if losses is not None:
            each, weights, expected = log.outcomes(losses)
            predicted = _Stacked.of(unscaled(expected), each, weights)
            if predicted.network is not None:
                predicted = replace(predicted, network=unscaled(predicted.network))
    finally:
        log.close()
    return chances, predicted


def check_known(table: Floats, data: Trajectories) -> Floats:
    """A table of known propensities, refused unless it is one and agrees with the data.

    Args:
        table: Probability of every action, shape (n_decisions, n_actions).
        data: The decisions, perhaps with the propensity of each logged action.
    """
    n, n_actions = data.n_decisions, data.n_actions
    checked = check_probabilities("propensities", table, n=n, n_actions=n_actions)
    taken = checked[np.arange(n), data.logged_action]
    require("propensities", "must be above 0 for the logged action", taken > 0)
    if data.propensity is not None:
        agrees = np.abs(taken - data.logged_propensity) <= AGREEMENT
        require("propensities", "must agree with the propensity in the data", agrees)
    return checked
