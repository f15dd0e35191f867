"""What is asked of a world: one form for all of them."""

from dataclasses import dataclass

from etips.progress import Progress, no_progress
from etips.worlds.bandit import Logging


@dataclass(frozen=True)
class Simulation:
    """What to simulate; a world takes what concerns it.

    Args:
        n_stays: How many stays, or samples; None for all that a world of fixed size has.
        seed: Same seed, same data.
        lag: 0 or 1, as far as the world has it.
        logging: Of labelled samples: how the logging policy acts.
        progress: Told how far it is.
    """

    n_stays: int | None
    seed: int = 0
    lag: int = 0
    logging: Logging = "sampled"
    progress: Progress = no_progress
