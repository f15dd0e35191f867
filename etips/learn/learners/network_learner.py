"""Learners that train networks: how these are shaped and trained, and what they stand on."""

from dataclasses import dataclass, field

from etips.data.trajectories import Trajectories
from etips.evaluation.log import PROPENSITY_FLOOR
from etips.learn.fitting.stages import ENCODER, Training
from etips.learn.fitting.trainer import Trainer
from etips.learn.learners.fitted_nuisances import FittedNuisances, fit_nuisances
from etips.learn.learners.learner import Learner
from etips.learn.nuisance.outcome import FittedOutcome, fit_outcome
from etips.learn.nuisance.propensity_models import PropensityModel
from etips.models.encoders.registry import AnyEncoder


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

    def _fit_nuisances(
        self,
        stays: Trajectories,
        trainer: Trainer,
        *,
        support: float,
        model: PropensityModel | None = None,
        clip: float = PROPENSITY_FLOOR,
    ) -> FittedNuisances:
        """Propensities and support; see `fit_nuisances`.

        Args:
            stays: Logged.
            trainer: Trains the networks.
            support: Least propensity of a recommended action.
            model: Where the logged propensities come from.
            clip: Logged propensities below this are raised to it.
        """
        return fit_nuisances(
            stays,
            trainer,
            encoder=self.encoder,
            training=self.training,
            seed=self.seed,
            support=support,
            model=model,
            clip=clip,
        )

    def _fit_outcome(
        self, base: FittedNuisances, trainer: Trainer, *, additive: bool = False
    ) -> FittedOutcome:
        """Predicted losses of the same stays; `additive` without interaction."""
        settings = base.settings(self.training.with_seed(self.seed).outcome)
        return fit_outcome(
            base.prepared, base.encoder, settings, trainer, seed=self.seed, additive=additive
        )
