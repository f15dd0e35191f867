"""The direct method: predict what every action costs and take the least."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from etips.data.decisions import Bools
from etips.data.trajectories import Trajectories
from etips.errors import SettingError
from etips.evaluation.whole_stay import StayLog, silent_values, wdr
from etips.evaluation.whole_stay_course import Course, Outcome, require_outcome
from etips.learn.fitting.candidates import Candidate
from etips.learn.fitting.trainer import Trainer
from etips.learn.learners.learner import Fit
from etips.learn.learners.policy_search import NetworkLearner
from etips.learn.nuisance.fitted_nuisances import SUPPORT, FittedNuisances
from etips.learn.nuisance.outcome import is_share
from etips.learn.nuisance.stay_value import FittedStayValue, fit_stay_value
from etips.models.encoders.registry import as_encoder
from etips.policies.policy import Kind

Horizon = Literal["decision", "stay"]
"""How far a policy looks ahead: to the loss of the decision, or to the end of the stay."""


@dataclass(kw_only=True, eq=False)
class DirectMethod(NetworkLearner):
    """Predict what every action costs from the history, and recommend the least.

    Args:
        interaction: Let the effect of an action depend on the history. False is the network of the
            paper, which adds a history term to an action term: it ranks the actions the same for
            everybody, so it can only give a constant policy.
        horizon: "decision" predicts the loss of the action; "stay" predicts the outcome of the stay
            if the action is taken now and this policy decides from then on (fitted Q iteration).
        outcome: Of a stay, where that is the horizon: the sum of its losses, or the last of them.
        encoder: As in `EtIPS`.
        support: Least propensity of an action that may be recommended.
        training: Folds, device, and settings of each kind of network.
        seed: Same seed, machine and versions, same policy.
    """

    interaction: bool = True
    horizon: Horizon = "decision"
    outcome: Outcome = "sum"
    support: float = SUPPORT

    def _learn(self, stays: Trajectories, trainer: Trainer) -> Fit:
        self._check()
        base = self._fit_nuisances(stays, trainer, support=self.support)
        if self.horizon == "stay":
            return self._look_ahead(base, trainer)
        outcome = self._fit_outcome(base, trainer, additive=not self.interaction)
        # The additive network ranks alike in logits; a mean of chances would bend the ranking.
        chances = self.interaction and is_share(stays)
        kind: Kind = "least loss" if chances else "least amount"
        return Fit(
            base.policy(kind, networks=outcome.bundle),
            propensity=base.propensity,
            outcome=outcome,
            quality=base.propensity.quality,
            support=base.support,
        )

    def _look_ahead(self, base: FittedNuisances, trainer: Trainer) -> Fit:
        """The policy of least outcome of the stay, among actions with support."""
        value = fit_stay_value(
            base.prepared,
            as_encoder(self.encoder),
            self.training.with_seed(self.seed).outcome,
            trainer,
            seed=self.seed,
            policy=None,
            outcome=self.outcome,
            allowed=_open(base).astype(np.float64),
        )
        return Fit(
            base.policy("least amount", networks=value.bundle),
            propensity=base.propensity,
            quality=base.propensity.quality,
            support=base.support,
            whole_stay=_judge(base, value, self.outcome),
        )

    def _check(self) -> None:
        if not isinstance(self.interaction, bool):
            raise SettingError("interaction", "must be true or false")
        if self.horizon not in get_args(Horizon):
            raise SettingError("horizon", "must be decision or stay")
        require_outcome(self.outcome)
        if self.horizon == "stay" and not self.interaction:
            raise SettingError("interaction", "must be true where the horizon is the stay")


def StayDirectMethod(**settings: Any) -> DirectMethod:  # noqa: ANN401, N802
    """`DirectMethod` with the outcome of the stay in view."""
    return DirectMethod(**{"horizon": "stay", **settings})


def _open(base: FittedNuisances) -> Bools:
    """Actions that the policy may come to take; without support, what is likeliest."""
    likeliest = base.propensity.log_probabilities.argmax(axis=1)
    unsupported = ~base.allowed.any(axis=1, keepdims=True)
    usual = np.eye(base.allowed.shape[1], dtype=bool)[likeliest]
    return np.where(unsupported, usual, base.allowed)


def _judge(base: FittedNuisances, value: FittedStayValue, outcome: Outcome) -> Candidate:
    """The outcome of a stay under the policy, by networks that had not seen the stay.

    The ratio of whole stays weighs what followed; where it is worth nothing any more the policy
    decides once more and then the clinicians. Predictions of the policy's own outcome would be
    kinder to it: it was made to make them small.

    Args:
        base: What the policy stands on.
        value: Predicted outcomes.
        outcome: Of a stay.
    """
    data = base.prepared.data
    action, n_actions = data.logged_action, data.n_actions
    likely = np.eye(n_actions)[np.where(_open(base), value.expected, np.inf).argmin(axis=1)]
    abstains: Bools = ~np.asarray(base.allowed.any(axis=1))
    weight = np.where(abstains, 1.0, likely[np.arange(action.size), action] / base.chance)
    before, taken = silent_values(value.logged, likely, action, abstains)
    course = Course.of(data.decisions().stay, data.logged_loss, outcome)
    log = StayLog(course, weight, data.cluster, before, taken)
    evidence, ratios = wdr(log), log.ratios
    return Candidate(
        translation=np.nan,
        risk=evidence.value,
        std_error=evidence.std_error,
        matching_factor=float(weight.mean()),
        effective_size=float(ratios.effective[max(ratios.n_terms, 1) - 1]),
        chosen=True,
    )
