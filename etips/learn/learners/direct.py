"""The direct method: predict the loss of every action and take the least."""

from dataclasses import dataclass

from etips.data.trajectories import Trajectories
from etips.errors import SettingError
from etips.learn.fitting.requests import Requests
from etips.learn.learners.fit import Fit
from etips.learn.learners.network_learner import NetworkLearner
from etips.learn.nuisance.outcome import is_share
from etips.policies.policy import Kind


@dataclass(kw_only=True, eq=False)
class DirectMethod(NetworkLearner):
    """Predict the loss of every action from the history, and recommend the least.

    Args:
        interaction: Let the effect of an action depend on the history. False is the network of the
            paper, which adds a history term to an action term: it ranks the actions the same for
            everybody, so it can only give a constant policy.
        encoder: As in `EtIPS`.
        support: Least propensity of an action that may be recommended; see `lay_foundation`.
        training: Folds, device, and settings of each kind of network.
        seed: Same seed, machine and versions, same policy.
    """

    interaction: bool = True
    support: float | None = None

    def _learn(self, stays: Trajectories) -> Requests[Fit]:
        if not isinstance(self.interaction, bool):
            raise SettingError("interaction", "must be true or false")
        base = yield from self._lay_foundation(stays, support=self.support)
        outcome = yield from self._fit_outcome(base, additive=not self.interaction)
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
