"""What a simulated world knows beside its log."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from etips.data.coded import read_only
from etips.data.decisions import Floats


@dataclass(frozen=True, eq=False, repr=False)
class Truth:
    """What only a simulated world knows: the expected loss of every action, and the logging policy.

    Args:
        code: Which row of the two tables holds at each step, shape (total_steps,).
        expected_loss: Expected loss of each action, shape (n_codes, n_actions).
        logging: Probability of each action under the logging policy, shape (n_codes, n_actions).
    """

    code: NDArray[np.int32]
    expected_loss: Floats
    logging: Floats

    def __post_init__(self) -> None:
        for name in ("code", "expected_loss", "logging"):
            object.__setattr__(self, name, read_only(getattr(self, name)))
