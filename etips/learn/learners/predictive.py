"""Predictive modelling: do what the clinicians would most likely do."""

from dataclasses import dataclass

from etips.data.trajectories import Trajectories
from etips.learn.fitting.trainer import Trainer
from etips.learn.learners.fit import Fit
from etips.learn.learners.fitted_nuisances import fit_nuisances
from etips.learn.learners.network_learner import NetworkLearner


@dataclass(kw_only=True, eq=False)
class PredictiveModel(NetworkLearner):
    """Imitate the clinicians: the fitted propensities are the policy.

    Args:
        encoder: As in `EtIPS`.
        training: Folds, device, and settings of the networks.
        seed: Same seed, machine and versions, same policy.
    """

    def _learn(self, stays: Trajectories, trainer: Trainer) -> Fit:
        base = fit_nuisances(
            stays,
            trainer,
            encoder=self.encoder,
            training=self.training,
            seed=self.seed,
            support=0.0,
        )
        propensity = base.propensity
        return Fit(base.policy("imitation"), propensity=propensity, quality=propensity.quality)
