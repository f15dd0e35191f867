"""Doubly robust learning: minimise the doubly robust risk, starting from the clinicians."""

from dataclasses import dataclass, replace

from etips.learn.fitting.trainer import Trainer
from etips.learn.learners.aims import Aim
from etips.learn.learners.fit import Fit
from etips.learn.learners.fitted_nuisances import FittedNuisances
from etips.learn.learners.policy_search import PolicyLearner


@dataclass(kw_only=True, eq=False)
class DoublyRobust(PolicyLearner):
    """Minimise the doubly robust risk: predicted losses, corrected by weighted residuals.

    Both the propensities and the predicted losses are cross-fitted. No translation is needed: the
    correction has mean zero, so there is nothing to flee from. The policy takes its likeliest
    action. Settings as in `PolicyLearner`.
    """

    kl: float = 0.01

    def learn_policy(self, base: FittedNuisances, trainer: Trainer) -> Fit:
        """Predict losses, then learn the policy."""
        outcome = self._fit_outcome(base, trainer)
        return replace(self.search(base), outcome=outcome).run(trainer)

    def aims(self, mean_loss: float) -> list[Aim]:  # noqa: ARG002
        """What is trained: one set of networks."""
        return [Aim("doubly robust")]
