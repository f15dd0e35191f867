"""A training as a learner asks for it: who does it, alone or beside others, is the driver's matter.

A learner is a generator. It yields a request, is sent the trained networks, and returns what it
learned: `bundle = yield TrainingRequest(...)`. Its parts are generators too: `yield from`.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import TypeVar

import torch

from etips.learn.fitting.prepare import Prepared
from etips.learn.training.objectives import Objective, part_of
from etips.learn.training.settings import Settings
from etips.models.bundle import Bundle

FREE = ("learning_rate", "weight_decay")
"""Settings in which networks of one bundle may differ."""

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class TrainingRequest:
    """Networks to be trained, each at its held-out best when they come back.

    Args:
        prepared: The stays.
        bundle: Where to start: sets of one network a fold, set by set.
        objective: What to minimise; its members come set by set.
        stage: What it is called, in run folders and reports.
        settings: How.
    """

    prepared: Prepared
    bundle: Bundle
    objective: Objective
    stage: str
    settings: Settings

    def is_like(self, other: "TrainingRequest") -> bool:
        """Whether both can be trained as one bundle."""
        mine, theirs = self.prepared, other.prepared
        own = self.settings
        freed = replace(
            other.settings, learning_rate=own.learning_rate, weight_decay=own.weight_decay
        )
        return (
            self.stage == other.stage
            and self.bundle.network == other.bundle.network
            and own == freed
            and mine.steps.device == theirs.steps.device
            and torch.equal(mine.folds.weight, theirs.folds.weight)
            and torch.equal(mine.folds.held_out, theirs.folds.held_out)
        )

    def part(self, these: slice) -> "TrainingRequest":
        """The request of some of its networks, a stage of its own."""
        return replace(
            self,
            bundle=self.bundle.select(range(these.start, these.stop)),
            objective=part_of(self.objective, these),
            stage=f"{self.stage}-{these.start}-{these.stop}",
        )


@dataclass(frozen=True)
class ModelFitted:
    """A model that was fitted without being trained in epochs, for those who watch.

    Args:
        name: What it is called.
        seconds: That it took, on one core.
    """

    name: str
    seconds: float


Requests = Generator[TrainingRequest | ModelFitted, Bundle, T]
"""What a learner, or a part of one, is: it asks for trainings one after the other, is sent the
networks of each, says which models it fitted itself, and returns what it learned."""
