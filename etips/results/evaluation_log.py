"""The log that an evaluation weighs with: propensities and predicted losses, known or fitted."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np

from etips.data.decisions import Floats, Ints
from etips.data.splitting import assign_folds
from etips.data.trajectories import Trajectories
from etips.errors import SettingError, require
from etips.evaluation.blending import blend_predictions, blend_propensities
from etips.evaluation.inference.checks import check_probabilities
from etips.evaluation.log import PROPENSITY_FLOOR, Log
from etips.learn.fitting.driver import drive
from etips.learn.fitting.folds_at_once import AtOnce
from etips.learn.fitting.prepare import Prepared, choose_device, prepare
from etips.learn.fitting.stages import ENCODER, Training
from etips.learn.nuisance.model_choice import ModelKind, Rivals
from etips.learn.nuisance.outcome_models import SklearnOutcome
from etips.learn.nuisance.propensity import FittedPropensity
from etips.learn.training.epoch_report import Report
from etips.models.bundle import Bundle
from etips.models.encoders.registry import AnyEncoder
from etips.policies.policy import FittedPolicy
from etips.results.balanced_log import BalancedLog, balance_log
from etips.results.followed_policies import Policy, as_fitted

AGREEMENT = 1e-6
"""How far a known table and the propensity in the data may differ: both may have been rounded."""


Source = Literal["cross-fitted", "policy"]
"""Where propensities come from that nobody knows: networks fitted on the evaluated stays, or those
that were fitted with the first policy that has some."""

CROSS_FITTED = "cross-fitted on the evaluated stays"

LEFT_OUT = "the error of the fitted propensities; that of sndr and dr holds it, but for small terms"
"""What the intervals of estimators without a model leave out where propensities are fitted."""


@dataclass(frozen=True)
class Models:
    """How an evaluation comes by propensities and predicted losses.

    Args:
        encoder: Of the networks fitted here.
        training: Of them; the folds are stays of the evaluated data.
        outcome: Predict losses, for the estimators that use them: True by our networks, or by a
            `SklearnOutcome`; False leaves those estimators out.
        clip: Propensities below this are raised to it.
        seed: Of the networks.
        kind: What fits both: "networks", "trees", or "auto", the better on held-out stays where
            trees can take part; see `Rivals`.
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
    kind: ModelKind = "auto"

    def __post_init__(self) -> None:
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
        unbalanced: The log with propensities as they were fitted, where it has balanced ones.
    """

    log: Log
    notes: Mapping[str, str]
    fitted: Floats | None
    unbalanced: Log | None = None


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
    prepared, table = None, None
    if known is not None:
        table, source = check_known(known, data), "known of every action, as given"
    elif data.propensity is not None:
        source = "known, from the data"
    elif models.propensity == "policy" and by_policy is not None:
        table, source = by_policy[1].propensities(data), _with_policy(by_policy[0])
    else:
        prepared = _prepare(data, models)
        fitted_now = _propensities(prepared, models, report)
        won = _rivals(data, models).sentence
        table, source = np.exp(fitted_now.log_probabilities), _by(fitted_now.bundle, won)
    predicted, by = _predicted(data, models, prepared, report)
    by_design = known is not None or data.propensity is not None
    figures = {"propensities": table, "predicted": predicted}
    log = Log.of(data, **figures, floor=models.clip, known=by_design, folds=AtOnce())
    share = regressed = 0.0
    if not by_design:  # with known propensities nothing hangs on the predictions
        log, share = blend_predictions(log)
    if prepared is not None and table is not None:
        log, regressed = blend_propensities(log, _fold(prepared))
    balanced = _balance(log, models, prepared)
    notes = {
        "propensities": source + _of_which(regressed, "logistic regressions"),
        "predicted losses": by + _of_which(share, "regressions and trees"),
        "clip": f"{log.propensity_floor:g}",
    }
    if not by_design:
        notes["intervals of snips and ips leave out"] = LEFT_OUT
    if balanced.rebalanced is not None:
        notes["balance"] = balanced.rebalanced.sentence
    beside = data.propensity is not None and known is None and by_policy is not None
    fitted = by_policy[1].propensities(data) if by_policy and beside else None
    return EvaluationLog(balanced.log, notes, fitted, balanced.unbalanced)


def _of_which(share: float, what: str) -> str:
    return f"; {share:.0%} of {what} on what was last visible" if share > 0 else ""


def _balance(log: Log, models: Models, prepared: Prepared | None) -> BalancedLog:
    """The log with its fitted propensities corrected in the folds that they were fitted in."""
    if not models.training.balance:
        return BalancedLog(log)
    if prepared is None:
        return balance_log(log)
    return balance_log(log, fold=_fold(prepared))


def _fold(prepared: Prepared) -> Ints:
    """Of each decision, as networks were fitted."""
    return np.asarray(prepared.folds.fold[prepared.data.decisions().stay])


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


def _by(model: object, won: str) -> str:
    """Where cross-fitted figures come from; networks are what everybody expects where alone.

    Args:
        model: Fitted.
        won: That others were tried, if they were.
    """
    if isinstance(model, Bundle):
        return f"{CROSS_FITTED}, by networks{won}" if won else CROSS_FITTED
    return f"{CROSS_FITTED}, by boosted trees{won}"


def _rivals(data: Trajectories, models: Models) -> Rivals:
    return Rivals.of(models.kind, data, models.encoder, seed=models.seed)


def _propensities(prepared: Prepared, models: Models, report: Report | None) -> FittedPropensity:
    training = replace(models.training.with_seed(models.seed), calibrate=True)
    return drive(_rivals(prepared.data, models).propensity(prepared, training), report=report)


def _predicted(
    data: Trajectories, models: Models, prepared: Prepared | None, report: Report | None
) -> tuple[Floats | None, str]:
    """Cross-fitted loss of every action at every decision, and by what; None if unwanted."""
    if isinstance(models.outcome, SklearnOutcome):
        fold = assign_folds(data, n_folds=models.n_folds, seed=models.seed)
        return models.outcome.cross_fit(data, fold), CROSS_FITTED
    if not models.outcome:
        return None, "none"
    training = models.training.with_seed(models.seed)
    prepared = prepared or _prepare(data, models)
    rivals = _rivals(data, models)
    outcome = drive(rivals.outcome(prepared, training), report=report)
    return outcome.expected, _by(outcome.bundle, rivals.sentence)


def _prepare(data: Trajectories, models: Models) -> Prepared:
    device = choose_device(models.training.device)
    return prepare(data, n_folds=models.n_folds, seed=models.seed, device=device)


def _fitted(policy: Policy) -> FittedPolicy | None:
    """The policy as it was fitted, where propensities were fitted with it."""
    own = as_fitted(policy)
    return None if own is None or own.propensity is None else own
