"""What an estimate has not seen: how losses enter it, and how few of them made its own error.

The standard error of a weighted risk comes from the losses that the weights fell on. When they are
all alike, or when the rare heavy one is missing by luck, it is too small, and in the very samples
in which the estimate is too low. The rest of the log, and the limits of a loss, know better.
"""

from dataclasses import dataclass

import numpy as np

from etips.evaluation.inference.checks import Floats

FEW = 4.0
"""Clusters behind an error at which it counts half; at ten times as many, one part in a hundred."""


@dataclass(frozen=True)
class Exposure:
    """How the losses of the clusters enter a quantity, and what was seen of them.

    Args:
        share: What a loss of one at every decision of a cluster adds, shape (k,); sums to one for a
            risk, to zero for a difference.
        scarcity: From 0, the losses that were weighted show their own spread, to 1, they do not.
        rate: One over the effective number of clusters.
        above: How far a single loss can lie above the usual.
        below: How far below.
        second: Second moment of the clusters' mean losses about the mean, all logged ones.
        third: Third moment.
    """

    share: Floats
    scarcity: float
    rate: float
    above: float
    below: float
    second: float
    third: float

    def minus(self, other: "Exposure") -> "Exposure":
        """That of a difference of two quantities of the same losses."""
        return Exposure(
            self.share - other.share,
            max(self.scarcity, other.scarcity),
            max(self.rate, other.rate),
            max(self.above, other.above),
            max(self.below, other.below),
            self.second,
            self.third,
        )


def expose(
    loss: Floats, size: Floats, weighted: Floats, weight: Floats, bounds: tuple[float, float] | None
) -> Exposure | None:
    """The exposure of a risk; None where no cluster has any weight.

    Args:
        loss: Total loss of each cluster, shape (k,).
        size: Its decisions, shape (k,).
        weighted: Its total loss, each times its weight, shape (k,).
        weight: Its total weight, shape (k,).
        bounds: The lowest and highest loss there is, where known.
    """
    total = float(weight.sum())
    if not total > 0:
        return None
    share = weight / total
    risk = float(weighted.sum()) / total
    known = size > 0
    mean = loss[known] / size[known]
    centred = mean - float(loss.sum()) / float(size.sum())
    square = centred**2
    second, third = float(square.mean()), float((square * centred).mean())
    if bounds is not None:
        above, below = bounds[1] - risk, risk - bounds[0]
    else:
        reach = float(np.sqrt((square**2).mean() / second)) if second > 0 else 0.0
        above, below = (reach, 0.0) if third >= 0 else (0.0, reach)
    scarcity = scarcity_of(deviations(weighted, weight))
    return Exposure(share, scarcity, float(share @ share), above, below, second, third)


def scarcity_of(effect: Floats) -> float:
    """1 where no cluster's effect (k,) makes the error, 1/2 where `FEW` do, 0 where many do."""
    return 1 / (1 + (effective_number(effect) / FEW) ** 2)


def effective_number(effect: Floats) -> float:
    """How many clusters of equal effect (k,) would make the same error; 0 when none has any."""
    scale = float(np.abs(effect).max(initial=0.0))
    if not scale > 0:
        return 0.0
    square = (effect / scale) ** 2
    return float(square.sum()) ** 2 / float(square @ square)


def deviations(numerator: Floats, denominator: Floats) -> Floats:
    """First-order effect of each cluster on ratios of totals, shape (k, ...); sums to zero."""
    below = denominator.sum(axis=0)
    ratio = divide(numerator.sum(axis=0), below)
    share = ratio * denominator
    excess = numerator - share
    rounding = np.abs(excess) <= 1e-13 * (np.abs(numerator) + np.abs(share))
    return divide(np.where(rounding, 0.0, excess), below)  # a constant loss has no error at all


def divide(above: Floats, below: Floats) -> Floats:
    """`above / below` with NaN, and no warning, where `below` is zero."""
    result = np.full(np.broadcast_shapes(np.shape(above), np.shape(below)), np.nan)
    np.divide(above, below, out=result, where=below != 0)
    return result
