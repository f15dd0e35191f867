"""Doubly robust learning: minimise the doubly robust risk, starting from the clinicians."""

from dataclasses import dataclass

from etips.data.trajectories import Trajectories
from etips.errors import SettingError
from etips.evaluation.log import PROPENSITY_FLOOR
from etips.learn.fitting.requests import Requests
from etips.learn.learners.aims import Aim
from etips.learn.learners.fit import Fit
from etips.learn.learners.foundation import check_kl
from etips.learn.learners.network_learner import NetworkLearner
from etips.learn.learners.policy_search import PolicySearch
from etips.learn.nuisance.propensity_models import PropensityModel


@dataclass(kw_only=True, eq=False)
class DoublyRobust(NetworkLearner):
    """Minimise the doubly robust risk: predicted losses, corrected by weighted residuals.

    Both the propensities and the predicted losses are cross-fitted. No translation is needed: the
    correction has mean zero, so there is nothing to flee from. As with `EtIPS` the policy draws or
    takes its likeliest action, or gives way to the clinicians, or to a regression of the loss, by
    held-out risk.

    Args:
        propensity: As in `EtIPS`.
        kl: Weight of the KL divergence from the propensities.
        others: Let a regression of the loss stand beside it where the log is small.
        clip: Logged propensities below this are raised to it.
        encoder: As in `EtIPS`.
        support: Least propensity of an action that may be recommended; see `lay_foundation`.
        training: Folds, device, and settings of each kind of network.
        models: As in `NetworkLearner`.
        seed: Same seed, machine and versions, same policy.
    """

    propensity: PropensityModel | None = None
    kl: float = 0.01
    clip: float = PROPENSITY_FLOOR
    support: float | None = None
    others: bool = True

    def _learn(self, stays: Trajectories) -> Requests[Fit]:
        check_kl(self.kl)
        if not isinstance(self.others, bool):
            raise SettingError("others", "must be true or false")
        base = yield from self._lay_foundation(
            stays,
            support=self.support,
            model=self.propensity,
            clip=self.clip,
            regression=self.others,
        )
        outcome = yield from self._fit_outcome(base)
        search = PolicySearch(
            base,
            [Aim("doubly robust")],
            base.start.bundle,
            base.settings(self.training.with_seed(self.seed + 1).policy),
            kl=self.kl,
            constants=False,
            outcome=outcome,
            regression=base.regression() if self.others else None,
            finish=self.training.finish,
        )
        return (yield from search.run())
