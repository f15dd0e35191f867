"""Learners that train networks: how these are shaped and trained, and what they stand on."""

from dataclasses import dataclass, field

from etips.data.trajectories import Trajectories
from etips.evaluation.log import PROPENSITY_FLOOR
from etips.learn.fitting.requests import Requests
from etips.learn.fitting.stages import ENCODER, Training
from etips.learn.learners.foundation import Foundation, lay_foundation
from etips.learn.learners.learner import Learner
from etips.learn.nuisance.outcome import FittedOutcome, fit_outcome
from etips.learn.nuisance.propensity_models import PropensityModel
from etips.models.encoders.registry import AnyEncoder, as_encoder


@dataclass(kw_only=True, eq=False)
class NetworkLearner(Learner):
    """A learner that trains networks.

    Args:
        encoder: `GRU(...)`, `LSTM(...)`, or any causal torch module (a class or an instance).
        training: Folds, device, and settings of each kind of network.
        seed: Same seed, machine and versions, same policy.
    """

    encoder: AnyEncoder = ENCODER
    training: Training = field(default_factory=Training)
    seed: int = 0

    def _lay_foundation(
        self,
        stays: Trajectories,
        *,
        support: float | None,
        model: PropensityModel | None = None,
        clip: float = PROPENSITY_FLOOR,
    ) -> Requests[Foundation]:
        """Propensities and support; see `lay_foundation`."""
        return lay_foundation(
            stays,
            encoder=self.encoder,
            training=self.training,
            seed=self.seed,
            support=support,
            model=model,
            clip=clip,
        )

    def _fit_outcome(self, base: Foundation, *, additive: bool = False) -> Requests[FittedOutcome]:
        """Predicted losses of the same stays; see `fit_outcome`."""
        settings = self.training.with_seed(self.seed).outcome
        encoder = as_encoder(self.encoder)
        return fit_outcome(base.prepared, encoder, settings, seed=self.seed, additive=additive)
