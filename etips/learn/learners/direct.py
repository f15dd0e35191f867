"""The direct method: predict the loss of every action and take the least."""

from dataclasses import dataclass, field

from etips.data.trajectories import Trajectories
from etips.errors import SettingError
from etips.evaluation.log import PROPENSITY_FLOOR
from etips.learn.learners import inputs, learner, params
from etips.learn.learners.foundation import (
    ENCODER,
    Training,
    conclude,
    fit_outcome,
    is_share,
    lay_foundation,
)
from etips.learn.training.epoch_report import Report
from etips.models.encoders.registry import AnyEncoder, as_encoder
from etips.runs.run import Run


@dataclass(kw_only=True, eq=False)
class DirectMethod:
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
    encoder: AnyEncoder = ENCODER
    support: float | None = None
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
        if not isinstance(self.interaction, bool):
            raise SettingError("interaction", "must be true or false")
        base = lay_foundation(
            stays,
            encoder=self.encoder,
            model=None,
            training=self.training,
            support=self.support,
            clip=PROPENSITY_FLOOR,
            seed=self.seed,
            report=report,
            run=run,
        )
        networks = base.outcome
        if not self.interaction:
            networks, _ = fit_outcome(
                base.prepared,
                as_encoder(self.encoder),
                self.training.with_seed(self.seed).outcome,
                seed=self.seed,
                additive=True,
                report=report,
            )
        # The additive network ranks alike in logits; a mean of chances would bend the ranking.
        chances = self.interaction and is_share(stays)
        self.policy_ = conclude(
            base, "least loss" if chances else "least amount", networks=networks
        )
        self.quality_ = base.propensity.quality
        self.support_ = base.support
