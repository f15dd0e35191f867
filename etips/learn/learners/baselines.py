"""Learners with nothing or next to nothing to learn: what every other one is compared with."""

from dataclasses import dataclass

import numpy as np

from etips.data.trajectories import Trajectories
from etips.errors import DataError, require_seed
from etips.learn.fitting.trainer import Trainer
from etips.learn.learners.fit import Fit
from etips.learn.learners.learner import Learner
from etips.policies.policy import FittedPolicy


@dataclass(kw_only=True, eq=False)
class RandomPolicy(Learner):
    """Every action equally likely, whoever the patient.

    Args:
        seed: Of the actions that `predict` draws; the same data get the same actions every time.
    """

    seed: int = 0

    def _learn(self, stays: Trajectories, trainer: Trainer) -> Fit:  # noqa: ARG002
        require_seed(self.seed)
        if not stays.logged:  # questions may not know all actions
            raise DataError("data", "must hold actions and losses to learn from")
        return Fit(FittedPolicy("uniform", stays.schema, seed=self.seed))


@dataclass(kw_only=True, eq=False)
class MostFrequent(Learner):
    """The action logged most often, for everyone; among equals the lowest."""

    def _learn(self, stays: Trajectories, trainer: Trainer) -> Fit:  # noqa: ARG002
        counts = np.bincount(stays.logged_action, minlength=stays.n_actions)
        if not counts.any():
            raise DataError("data", "must hold at least one decision")
        return Fit(FittedPolicy("constant", stays.schema, constant=int(counts.argmax())))
