"""Predictive modelling: do what the clinicians would most likely do."""

from dataclasses import dataclass, field

from etips.data.trajectories import Trajectories
from etips.evaluation.log import PROPENSITY_FLOOR
from etips.learn.learners import inputs, learner, params
from etips.learn.learners.foundation import ENCODER, Training, conclude, lay_foundation
from etips.learn.training.epoch_report import Report
from etips.models.encoders.registry import AnyEncoder
from etips.runs.run import Run


@dataclass(kw_only=True, eq=False)
class PredictiveModel:
    """Imitate the clinicians: the fitted propensities are the policy.

    Args:
        encoder: As in `EtIPS`.
        training: Folds, device, and settings of the networks.
        seed: Same seed, machine and versions, same policy.
    """

    encoder: AnyEncoder = ENCODER
    training: Training = field(default_factory=Training)
    seed: int = 0

    fit = inputs.fit
    predict_proba = learner.predict_proba
    predict = learner.predict
    abstains = learner.abstains
    save = learner.save
    classes_ = property(params.classes)
    n_features_in_ = property(params.n_features)
    get_params = params.get_params
    set_params = params.set_params

    def _learn(self, stays: Trajectories, report: Report | None, run: Run | None) -> None:
        base = lay_foundation(
            stays,
            encoder=self.encoder,
            model=None,
            training=self.training,
            support=0.0,
            clip=PROPENSITY_FLOOR,
            seed=self.seed,
            outcome=False,
            report=report,
            run=run,
        )
        self.policy_ = conclude(base, "imitation")
        self.quality_ = base.propensity.quality
