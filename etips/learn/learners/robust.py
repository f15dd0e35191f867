"""Doubly robust learning: minimise the doubly robust risk, starting from the clinicians."""

from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from etips.data.trajectories import Trajectories
from etips.evaluation.log import PROPENSITY_FLOOR
from etips.learn.fitting.crossfit import fit_sets
from etips.learn.learners import inputs, learner, params
from etips.learn.learners.foundation import (
    ENCODER,
    Foundation,
    Training,
    check_pull,
    conclude,
    lay_foundation,
)
from etips.learn.learners.policy_objective import Logged, policy_objective
from etips.learn.nuisance.propensity import PropensityModel
from etips.learn.training.epoch_report import Report
from etips.learn.training.objectives import doubly_robust
from etips.models.bundle import Bundle
from etips.models.encoders.registry import AnyEncoder
from etips.runs.run import Run


@dataclass(kw_only=True, eq=False)
class DoublyRobust:
    """Minimise the doubly robust risk: predicted losses, corrected by weighted residuals.

    Both the propensities and the predicted losses are cross-fitted. No translation is needed: the
    correction has mean zero, so there is nothing to flee from.

    Args:
        propensity: As in `EtIPS`.
        kl: Pull towards the propensities.
        clip: Logged propensities below this are raised to it.
        encoder: As in `EtIPS`.
        support: Least propensity of an action that may be recommended; see `lay_foundation`.
        training: Folds, device, and settings of each kind of network.
        seed: Same seed, machine and versions, same policy.
    """

    propensity: PropensityModel | None = None
    kl: float = 0.01
    clip: float = PROPENSITY_FLOOR
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
        check_pull(self.kl)
        base = lay_foundation(
            stays,
            encoder=self.encoder,
            model=self.propensity,
            training=self.training,
            support=self.support,
            clip=self.clip,
            seed=self.seed,
            report=report,
            run=run,
        )
        self.policy_ = conclude(base, "softmax", networks=self._train(base, report))
        self.quality_ = base.propensity.quality
        self.clipped_share_ = base.clipped_share
        self.support_ = base.support

    def _train(self, base: Foundation, report: Report | None) -> Bundle:
        prepared, networks = base.prepared, base.propensity.bundle
        assert base.expected is not None
        expected = prepared.by_row(base.expected.astype(np.float32))

        def risk(logits: Tensor, logged: Logged, seen: Tensor, _: slice) -> Tensor:
            return doubly_robust(logits, *logged, expected[seen])

        return fit_sets(
            prepared,
            networks.network,
            policy_objective(base, risk, kl=self.kl),
            stage="policy",
            settings=self.training.with_seed(self.seed + 1).policy,
            start=networks,
            report=report,
        )
