"""Predictive modelling: do what the clinicians would most likely do."""

from dataclasses import dataclass, replace

from etips.data.trajectories import Trajectories
from etips.learn.fitting.requests import Requests
from etips.learn.fitting.stages import Training
from etips.learn.learners.fit import Fit
from etips.learn.learners.foundation import lay_foundation
from etips.learn.learners.network_learner import NetworkLearner


@dataclass(kw_only=True, eq=False)
class PredictiveModel(NetworkLearner):
    """Imitate the clinicians: the fitted propensities are the policy.

    Args:
        encoder: As in `EtIPS`.
        training: Folds, device, and settings of the networks.
        models: As in `NetworkLearner`.
        seed: Same seed, machine and versions, same policy.
    """

    def _learn(self, stays: Trajectories) -> Requests[Fit]:
        base = yield from lay_foundation(
            stays,
            encoder=self.encoder,
            training=self._unbalanced(),
            seed=self.seed,
            support=0.0,
            models=self.models,
        )
        propensity = base.propensity
        return Fit(base.policy("imitation"), propensity=propensity, quality=propensity.quality)

    def _unbalanced(self) -> Training:
        """How networks are trained, without a balance of weights: here nothing is weighed."""
        known = isinstance(self.training, Training)  # what is none is refused later
        return replace(self.training, balance=False) if known else self.training
