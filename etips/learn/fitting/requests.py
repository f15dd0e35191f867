"""A training as a learner asks for it, before it is known whether it will be done alone."""

from dataclasses import dataclass, replace

import torch

from etips.learn.fitting.prepare import Prepared
from etips.learn.training.epoch_report import Report
from etips.learn.training.objectives import Objective
from etips.learn.training.settings import Settings
from etips.models.bundle import Bundle

FREE = ("learning_rate", "weight_decay")
"""Settings in which networks of one bundle may differ."""


@dataclass(frozen=True, eq=False)
class Order:
    """A training that a learner asks for.

    Args:
        prepared: The stays.
        bundle: Where to start.
        objective: What to minimise.
        stage: What it is called.
        settings: How.
        report: Told after every epoch.
    """

    prepared: Prepared
    bundle: Bundle
    objective: Objective
    stage: str
    settings: Settings
    report: Report | None = None

    def is_like(self, other: "Order") -> bool:
        """Whether both can be trained as one bundle."""
        mine, theirs = self.prepared, other.prepared
        free = {name: getattr(self.settings, name) for name in FREE}
        return (
            self.stage == other.stage
            and self.bundle.network == other.bundle.network
            and self.settings == replace(other.settings, **free)
            and mine.steps.device == theirs.steps.device
            and torch.equal(mine.folds.weight, theirs.folds.weight)
        )
