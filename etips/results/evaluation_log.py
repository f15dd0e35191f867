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
from etips.policies.policy import FittedPolicy
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

MODELS = (*(own.name for own in PROPENSITIES), NETWORK)
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
    say: cross-fitted on `data`, by stay, as predicted losses always are. `report` is told after
    every epoch of what is fitted.
    """
    by_policy = next(((n, own) for n, p in policies.items() if (own := _fitted(p))), None)
    table = None
    if known is not None:
        table, source = check_known(known, data), "known of every action, as given"
    elif data.propensity is not None:
        source = "known, from the data"
    elif models.propensity == "policy" and by_policy is not None:
        table, source = by_policy[1].propensities(data), _with_policy(by_policy[0])
    else:
        source = ""
    by_design = known is not None or data.propensity is not None
    fitted = _Fitted()
    if not source or models.outcome is True:
        fitted = _fit(data, models, propensities=not source, report=report)
    predicted, by = fitted.predicted, fitted.predicted_by
    if isinstance(models.outcome, SklearnOutcome):
        fold = assign_folds(data, n_folds=models.n_folds, seed=models.seed)
        predicted, by = models.outcome.cross_fit(data, fold), CROSS_FITTED
    table = fitted.propensities if table is None else table
    figures = {"propensities": table, "predicted": predicted}
    log = Log.of(data, **figures, floor=models.clip, known=by_design)
    if not by_design:  # with known propensities nothing hangs on the models
        log = log.beside(fitted.by_network, fitted.predicted_by_network)
    notes = {
        "propensities": source or fitted.propensities_by,
        "predicted losses": by,
        "clip": f"{log.propensity_floor:g}",
    }
    if not by_design:
        notes["intervals of snips and ips leave out"] = LEFT_OUT
    beside = data.propensity is not None and known is None and by_policy is not None
    stated = by_policy[1].propensities(data) if by_policy and beside else None
    return EvaluationLog(log, notes, stated)


@dataclass(frozen=True, eq=False)
class _Fitted:
    """What was fitted on the evaluated stays, out of fold, and by which models.

    Args:
        propensities: Of every action, shape (n_decisions, n_actions).
        propensities_by: In words.
        predicted: Loss of every action, of the same shape.
        predicted_by: In words.
        by_network: Propensities by the network alone; None where it is the only one.
        predicted_by_network: Losses likewise.
    """

    propensities: Floats | None = None
    propensities_by: str = ""
    predicted: Floats | None = None
    predicted_by: str = "none"
    by_network: Floats | None = None
    predicted_by_network: Floats | None = None


def _fit(
    data: Trajectories, models: Models, *, propensities: bool, report: Report | None
) -> _Fitted:
    """Stack models of what is wanted; losses stay within those that were logged."""
    device = choose_device(models.training.device)
    prepared = prepare(data, n_folds=models.n_folds, seed=models.seed, device=device)
    training = replace(models.training, calibrate=True)
    with_network = NETWORK in models.models  # without it dear models may be all that there are
    log = CrossFit.of(
        prepared,
        Trainer(report=report),
        encoder=models.encoder,
        training=training,
        seed=models.seed,
        models=models.models,
        recipes=(*PROPENSITIES, *(own for own in LOSSES if own.target == "loss")),
        seconds=min(SECONDS_A_DECISION * data.n_decisions, SECONDS) if with_network else np.inf,
    )

    loss = data.logged_loss

    def losses_from(standard: Floats) -> Floats:
        return np.asarray(np.clip(log.centre + log.unit * standard, loss.min(), loss.max()))

    def stack() -> _Fitted:
        losses = log.start_outcomes() if models.outcome is True else None
        fitted = _Fitted()
        if propensities:
            each, mixture, _ = log.propensities()
            by = _by(shares(each, mixture.weights))
            alone = _network(each, mixture.weights)
            fitted = replace(
                fitted, propensities=mixture.table, propensities_by=by, by_network=alone
            )
        if losses is not None:
            each, weights, expected = log.outcomes(losses)
            alone = _network(each, weights)
            fitted = replace(
                fitted,
                predicted=losses_from(expected),
                predicted_by=_by(shares(each, weights)),
                predicted_by_network=None if alone is None else losses_from(alone),
            )
        return fitted

    try:
        return stack()
    finally:
        log.close()


def _network(each: Sequence[ModelPredictions], weights: Floats) -> Floats | None:
    """What the network alone says, unless others have no weight beside it."""
    alone = [
        own.table for own, w in zip(each, weights, strict=True) if own.name == NETWORK and w < 1
    ]
    return alone[0] if alone else None


def _by(weights: Mapping[str, float]) -> str:
    """Where cross-fitted figures come from: the models that count, the most important first."""
    kept = sorted(((w, name) for name, w in weights.items() if w), key=lambda own: -own[0])
    return f"{CROSS_FITTED}: " + ", ".join(f"{name} {w:.2g}" for w, name in kept)


def check_known(table: Floats, data: Trajectories) -> Floats:
    """A table of known propensities, refused unless it is one and says what the data says.

    Args:
        table: Probability of every action, shape (n_decisions, n_actions).
        data: The decisions, perhaps with the propensity of each logged action.
    """
    n, n_actions = data.n_decisions, data.n_actions
    checked = check_probabilities("propensities", table, n=n, n_actions=n_actions)
    own = checked[np.arange(n), data.logged_action]
    require("propensities", "must be above 0 for the logged action", own > 0)
    if data.propensity is not None:
        agrees = np.abs(own - data.logged_propensity) <= AGREEMENT
        require("propensities", "must agree with the propensity in the data", agrees)
    return checked


def _with_policy(name: str) -> str:
    return f"fitted with the policy {name}, on its training stays"


def _fitted(policy: Policy) -> FittedPolicy | None:
    """The policy as it was fitted, where propensities were fitted with it."""
    own = as_fitted(policy)
    return None if own is None or own.propensity is None else own
