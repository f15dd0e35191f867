"""Which of several policies is kept, and what keeping it comes to on patients it was not kept for.

The chosen candidate is the luckiest of many, so its risk is too low; `risk_of_choosing` corrects
that.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from etips.data.decisions import Ints
from etips.learn.fitting.candidates import Candidate, Judged

Selection = Literal["held-out", "paper"]
"""How to choose: by what was held out and how much it weighs, or by the paper's plain SNIPS."""

CAUTION = 0.5
"""Standard errors that are added to a risk: of two alike the one that more decisions bear out. The
figures of docs/method/noise.md are of this rule."""


def choose(candidates: Sequence[Candidate], selection: Selection) -> int:
    """Place of the candidate that becomes the policy.

    Held-out: the least risk plus `CAUTION` standard errors of those that are sound; where none is,
    the one that rests on most decisions. Paper: the least SNIPS, whatever it rests on.

    Args:
        candidates: Judged ones.
        selection: How to choose.
    """
    if selection == "paper":
        return int(np.argmin([own.risk for own in candidates]))
    if not any(own.sound for own in candidates):
        return int(np.argmax([own.effective_size for own in candidates]))
    high = [own.risk + CAUTION * own.std_error if own.sound else np.inf for own in candidates]
    return int(np.argmin(np.nan_to_num(high, nan=np.inf)))


def risk_of_choosing(
    judged: Judged, selection: Selection, fold: Ints
) -> tuple[float, float] | None:
    """Risk of what choosing comes to, and its standard error; None without folds.

    The patients of each fold are judged by the candidate that the other folds choose.

    Args:
        judged: The candidates.
        selection: How to choose.
        fold: Of each patient, shape (k,).
    """
    if fold.max() == 0:
        return None
    places = np.empty(len(fold), np.int64)
    for number in range(fold.max() + 1):
        inside = fold == number
        places[inside] = choose(judged.on(~inside).candidates, selection)
    evidence = judged.totals.evidence_of_choice(places)
    return evidence.value, evidence.std_error
