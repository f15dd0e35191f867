"""Do policies differ, in pairs on the same stays? Do places?

Places are compared by Cochran's Q, made fit for few stays and for patients seen in two places.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy import special

from etips.errors import SettingError
from etips.evaluation.inference.checks import Floats, check_share
from etips.evaluation.inference.estimate import Contrast, Estimate, difference, holm
from etips.evaluation.inference.evidence import (
    Evidence,
    divide,
    effective_number,
)
from etips.evaluation.inference.intervals import DEFAULT, Interval, p_of_zero

ROUNDING = 1e-10
_NORMAL = -float(special.ndtri(0.025))


@dataclass(frozen=True)
class Heterogeneity:
    """Whether one number could be that of every place.

    Args:
        q: Cochran's Q: squared distances from the common number, over their variances.
        p_value: Welch's, which knows that variances of few stays are not known well.
        i_squared: Share of the spread between places that chance does not explain, 0..1.
    """

    q: float
    freedom: int
    p_value: float
    i_squared: float
    pooled: float


def hold_alike(parts: Sequence[Evidence], *, interval: Interval = DEFAULT) -> Heterogeneity | None:
    """Hold the same quantity of several places against one common number.

    A patient may have been in two of them: errors go by cluster over all places. A variance is no
    less than the interval's width tells, so that a place without any event is not sure.
    """
    usable = [part for part in parts if np.isfinite([part.value, part.std_error]).all()]
    if len(usable) < 2:
        return None
    values = np.array([part.value for part in usable])
    errors = np.array([_error(part, interval) for part in usable])
    ratios = (divide(part.numerator.sum(axis=0), part.denominator.sum(axis=0)) for part in usable)
    scale = max(float(np.abs(ratio).max()) for ratio in ratios)
    if not (errors > ROUNDING * scale).all():
        return None  # nothing but rounding: the same everywhere, and nothing to test
    inverse = np.linalg.pinv(_covariance(usable, errors))
    weight = inverse.sum(axis=1)
    pooled = float(weight @ values / weight.sum())
    apart = values - pooled
    q = max(float(apart @ inverse @ apart), 0.0)
    freedom = len(usable) - 1
    # of a variance: about the clusters that make it, less one
    own_freedom = np.array([max(effective_number(part.errors) - 1, 1.0) for part in usable])
    return Heterogeneity(
        q=q,
        freedom=freedom,
        p_value=_welch(q, 1 / errors**2, own_freedom),
        i_squared=max(0.0, 1 - freedom / q) if q > 0 else 0.0,
        pooled=pooled,
    )


def subtract(first: Evidence, second: Evidence) -> Evidence:
    """First minus second, each of its own clusters, some of which may be the same."""
    every = np.union1d(first.clusters, second.clusters)

    def spread(evidence: Evidence) -> Evidence:
        """The same quantity with every one of the clusters in its table; most add nothing."""
        place = np.searchsorted(every, evidence.clusters)

        def wide(values: Floats) -> Floats:
            result = np.zeros((every.size, *values.shape[1:]))
            result[place] = values
            return result

        exposure = evidence.exposure
        if exposure is not None:
            exposure = replace(exposure, share=wide(exposure.share))
        above, below = wide(evidence.numerator), wide(evidence.denominator)
        return replace(
            evidence, numerator=above, denominator=below, clusters=every, exposure=exposure
        )

    return spread(first).minus(spread(second))


def _error(evidence: Evidence, interval: Interval) -> float:
    """The standard error, or what the width of the interval tells if that is more."""
    low, high = interval(evidence)
    told = (high - low) / 2 / _NORMAL if math.isfinite(high - low) else 0.0
    return max(evidence.std_error, told)


def _covariance(parts: Sequence[Evidence], errors: Floats) -> Floats:
    """Of the values, shape (places, places): clusters that two places share make them go along."""
    every = np.unique(np.concatenate([part.clusters for part in parts]))
    columns = np.zeros((every.size, len(parts)))
    for number, part in enumerate(parts):
        columns[np.searchsorted(every, part.clusters), number] = part.errors
    covariance = columns.T @ columns
    covariance[np.diag_indices(len(parts))] = errors**2
    return covariance


def _welch(q: float, weight: Floats, freedom: Floats) -> float:
    """Welch (1951): Q over its degrees of freedom, with the error of the variances."""
    k = weight.size
    uncertain = float(((1 - weight / weight.sum()) ** 2 / freedom).sum())
    statistic = q / (k - 1) / (1 + 2 * (k - 2) / (k**2 - 1) * uncertain)
    return float(special.fdtrc(k - 1, (k**2 - 1) / (3 * uncertain), max(statistic, 0.0)))


@dataclass(frozen=True)
class Pair:
    """Two risks."""

    first: str
    second: str
    contrast: Contrast
    p_value: float
    adjusted_p: float
    differs: bool


def compare_pairs(
    estimates: Mapping[str, Estimate],
    *,
    reference: str | None = None,
    interval: Interval = DEFAULT,
    alpha: float = 0.05,
) -> tuple[Pair, ...]:
    """Every difference between two of the risks, or of each to a reference.

    Args:
        reference: Compare the others with this one only, and correct for no more than that.
    """
    check_share("alpha", alpha)
    if len(estimates) < 2:
        raise SettingError("policies", "must be two at least, the clinicians among them")
    if reference is not None and reference not in estimates:
        raise SettingError("reference", f"must be one of {', '.join(estimates)}")
    pairs = list(combinations(estimates, 2))
    if reference is not None:
        pairs = [(name, reference) for name in estimates if name != reference]
    contrasts = [difference(estimates[a], estimates[b], interval=interval) for a, b in pairs]
    p_values = np.array([p_of_zero(interval, contrast.evidence) for contrast in contrasts])
    adjusted = holm(p_values)
    return tuple(
        Pair(a, b, contrast, float(p), float(q), bool(q <= alpha))
        for (a, b), contrast, p, q in zip(pairs, contrasts, p_values, adjusted, strict=True)
    )
