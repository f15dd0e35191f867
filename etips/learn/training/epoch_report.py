"""How a training stands after an epoch."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class EpochReport:
    """How a training stands after an epoch.

    Args:
        epoch: How many are done.
        epochs: Of how many at most.
        loss: Mean training loss of the networks that still learn.
        held_out: Least risk on held-out stays so far; infinite where none are held out.
        seconds_left: If no network stops early.
        matching_factor: Mean weight on held-out stays; None for what is not a policy.
        stage: What a learner calls this training.
        seconds: What a model took that is not trained in epochs; None of a training.
    """

    epoch: int
    epochs: int
    loss: float
    held_out: float
    seconds_left: float
    matching_factor: float | None = None
    stage: str = ""
    seconds: float | None = None

    def to_json(self) -> dict[str, float | str]:
        """By name; a factor that there is not is left out."""
        values: dict[str, float | str | None] = {
            "stage": self.stage,
            "epoch": self.epoch,
            "epochs": self.epochs,
            "loss": self.loss,
            "held_out": self.held_out,
            "matching_factor": self.matching_factor,
            "seconds_left": self.seconds_left,
        }
        return {name: value for name, value in values.items() if value is not None}


Report = Callable[[EpochReport], None]
"""Told after every epoch."""
