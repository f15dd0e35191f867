"""Predictive modelling: do what the clinicians would most likely do."""

from dataclasses import dataclass, field

from etips.data.trajectories import Trajectories
from etips.learn.fitting.requests import Requests
from etips.learn.fitting.stages import ENCODER, Training
from etips.learn.learners.fit import Fit
from etips.learn.learners.foundation import lay_foundation
from etips.learn.learners.learner import Learner
from etips.models.encoders.registry import AnyEncoder


@dataclass(kw_only=True, eq=False)
class PredictiveModel(Learner):
    """Imitate the clinicians: the fitted propensities are the policy.

    Args:
        encoder: As in `EtIPS`.
        training: Folds, device, and settings of the networks.
        seed: Same seed, machine and versions, same policy.
    """

    encoder: AnyEncoder = ENCODER
    training: Training = field(default_factory=Training)
    seed: int = 0

    def _learn(self, stays: Trajectories) -> Requests[Fit]:
        base = yield from lay_foundation(
            stays, encoder=self.encoder, training=self.training, seed=self.seed, support=0.0
        )
        propensity = base.propensity
        return Fit(base.policy("imitation"), propensity=propensity, quality=propensity.quality)
