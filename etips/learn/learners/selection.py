"""Which candidate becomes the policy: held-out risk with its error, matching factor and size."""

import math
from collections.abc import Sequence
from typing import Literal

from etips.learn.fitting.candidates import Candidate

Selection = Literal["held-out", "paper"]
"""How to choose: by what was held out and how much it weighs, or by the paper's plain SNIPS."""


def choose(candidates: Sequence[Candidate], selection: Selection) -> int:
    """Place of the candidate that becomes the policy.

    Held-out: among n sound candidates the lowest risk plus sqrt(2 log n) standard errors. That is
    about how far the luckiest of n equals lies below its truth, so a small lucky arm does not win;
    of two equals the better supported does. Paper: the lowest SNIPS of those that were trained.
    """
    trained = [i for i, c in enumerate(candidates) if c.action is None]
    if selection == "paper":
        return min(trained, key=lambda i: candidates[i].risk)
    sound = [i for i, c in enumerate(candidates) if c.sound]
    if not sound:  # nothing can be told apart: the best supported is the safest
        return max(range(len(candidates)), key=lambda i: candidates[i].effective_size)
    reach = math.sqrt(2 * math.log(max(len(sound), 2)))
    return min(sound, key=lambda i: candidates[i].risk + reach * candidates[i].std_error)
