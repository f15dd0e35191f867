"""Doubly robust learning: minimise the doubly robust risk, starting from the clinicians."""

import math
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from etips.data.decisions import Floats
from etips.data.trajectories import Trajectories
from etips.evaluation.log import PROPENSITY_FLOOR
from etips.learn.fitting.requests import Requests, TrainingRequest
from etips.learn.learners.fit import Fit
from etips.learn.learners.foundation import Foundation, check_kl
from etips.learn.learners.judging import chosen_policy, judge_all, settle
from etips.learn.learners.network_learner import NetworkLearner
from etips.learn.learners.policy_objective import Logged, policy_objective
from etips.learn.nuisance.propensity_models import PropensityModel
from etips.learn.training.objectives import Weighted, doubly_robust


@dataclass(kw_only=True, eq=False)
class DoublyRobust(NetworkLearner):
    """Minimise the doubly robust risk: predicted losses, corrected by weighted residuals.

    Both the propensities and the predicted losses are cross-fitted. No translation is needed: the
    correction has mean zero, so there is nothing to flee from. As with `EtIPS` the policy draws or
    takes its likeliest action, or gives way to the clinicians, by held-out risk.

    Args:
        propensity: As in `EtIPS`.
        kl: Weight of the KL divergence from the propensities.
        clip: Logged propensities below this are raised to it.
        encoder: As in `EtIPS`.
        support: Least propensity of an action that may be recommended; see `lay_foundation`.
        training: Folds, device, and settings of each kind of network.
        models: As in `NetworkLearner`.
        seed: Same seed, machine and versions, same policy.
    """

    propensity: PropensityModel | None = None
    kl: float = 0.01
    clip: float = PROPENSITY_FLOOR
    support: float | None = None

    def _learn(self, stays: Trajectories) -> Requests[Fit]:
        check_kl(self.kl)
        base = yield from self._lay_foundation(
            stays, support=self.support, model=self.propensity, clip=self.clip
        )
        outcome = yield from self._fit_outcome(base)
        networks = yield TrainingRequest(
            base.prepared,
            base.start.bundle,
            self._objective(base, outcome.expected),
            stage="policy",
            settings=base.settings(self.training.with_seed(self.seed + 1).policy),
        )
        judged = judge_all(base, networks, (math.nan,), expected=outcome.expected, constants=False)
        path = settle(base, judged, "held-out")
        policy = chosen_policy(base, networks, path)
        return Fit(
            policy,
            propensity=base.propensity,
            outcome=outcome,
            path=path,
            quality=base.propensity.quality,
            support=policy.support,
            clipped_share=base.clipped_share,
            rebalanced=base.rebalanced,
        )

    def _objective(self, base: Foundation, losses: Floats) -> Weighted:
        expected = base.prepared.by_row(losses.astype(np.float32))

        def risk(logits: Tensor, logged: Logged, seen: Tensor, _: slice) -> Tensor:
            return doubly_robust(logits, *logged, expected[seen])

        return policy_objective(base, risk, kl=self.kl)
