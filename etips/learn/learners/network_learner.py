"""Learners that train networks: how these are shaped and trained, and what they stand on."""

from dataclasses import dataclass, field

from etips.data.trajectories import Trajectories
from etips.evaluation.log import PROPENSITY_FLOOR
from etips.learn.fitting.requests import Requests
from etips.learn.fitting.stages import ENCODER, Training
from etips.learn.learners.foundation import Foundation, lay_foundation
from etips.learn.learners.learner import Learner
from etips.learn.nuisance.model_choice import ModelKind
from etips.learn.nuisance.outcome import FittedOutcome
from etips.learn.nuisance.propensity_models import PropensityModel
from etips.models.encoders.registry import AnyEncoder


@dataclass(kw_only=True, eq=False)
class NetworkLearner(Learner):
    """A learner that trains networks.

    Args:
        encoder: `GRU(...)`, `LSTM(...)`, or any causal torch module (a class or an instance).
        training: Folds, device, and settings of each kind of network.
        models: What fits propensities and losses: "networks", "trees" (one row a patient, or the
            encoder "last"), or "auto", the better of both where trees can take part.
        seed: Same seed, machine and versions, same policy.
    """

    encoder: AnyEncoder = ENCODER
    training: Training = field(default_factory=Training)
    models: ModelKind = "auto"
    seed: int = 0

    def _lay_foundation(
        self,
        stays: Trajectories,
        *,
        support: float | None,
        model: PropensityModel | None = None,
        clip: float = PROPENSITY_FLOOR,
        rescale: bool = True,
        models: ModelKind | None = None,
        regression: bool = False,
    ) -> Requests[Foundation]:
        """Propensities and support; see `lay_foundation`.

        Args:
            stays: Logged.
            support: Least propensity of a recommended action.
            model: Where the logged propensities come from.
            clip: Logged propensities below this are raised to it.
            rescale: Bring weights to a mean of one.
            models: Instead of what the learner was told.
            regression: Begin regressions of the loss, which it will ask for.
        """
        return lay_foundation(
            stays,
            encoder=self.encoder,
            training=self.training,
            seed=self.seed,
            support=support,
            model=model,
            clip=clip,
            rescale=rescale,
            models=models or self.models,
            regression=regression,
        )

    def _fit_outcome(self, base: Foundation, *, additive: bool = False) -> Requests[FittedOutcome]:
        """Predicted losses of the same stays; see `Rivals.outcome`."""
        training = self.training.with_seed(self.seed)
        return base.rivals.outcome(base.prepared, training, additive=additive)
