"""Do places differ? Cochran's Q, made fit for few stays and for patients seen in two places."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from etips.evaluation.inference.checks import Floats
from etips.evaluation.inference.evidence import Evidence, divide
from etips.evaluation.inference.exposure import Exposure, Spread, effective_number
from etips.evaluation.inference.intervals import DEFAULT, Interval
from etips.evaluation.inference.quantiles import fisher_tail, normal_beyond

ROUNDING = 1e-10
_NORMAL = normal_beyond(0.025)


@dataclass(frozen=True)
class Heterogeneity:
    """Whether one number could be that of every place.

    Args:
        q: Cochran's Q: squared distances from the common number, over their variances.
        freedom: Places less one.
        p_value: Welch's, which knows that variances of few stays are not known well.
        i_squared: Share of the spread between places that chance does not explain, 0..1.
        pooled: The common number, were there one.
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

    Args:
        parts: Of each place; None is the answer where fewer than two have a number.
        interval: Of each.
    """
    usable = [own for own in parts if _is_usable(own)]
    if len(usable) < 2:
        return None
    values = np.array([own.value for own in usable])
    errors = np.array([_error(own, interval) for own in usable])
    scale = max(float(np.abs(_ratios(own)).max()) for own in usable)
    if not (errors > ROUNDING * scale).all():
        return None  # nothing but rounding: the same everywhere, and nothing to test
    inverse = np.linalg.pinv(_covariance(usable, errors))
    weight = inverse.sum(axis=1)
    pooled = float(weight @ values / weight.sum())
    apart = values - pooled
    q = max(float(apart @ inverse @ apart), 0.0)
    freedom = len(usable) - 1
    return Heterogeneity(
        q=q,
        freedom=freedom,
        p_value=_welch(q, 1 / errors**2, np.array([_freedom(own) for own in usable])),
        i_squared=max(0.0, 1 - freedom / q) if q > 0 else 0.0,
        pooled=pooled,
    )


def spread_over(evidence: Evidence, clusters: NDArray[Any]) -> Evidence:
    """The same quantity, with every one of these clusters in its table; most add nothing.

    So quantities of different places can be subtracted as those of one place are.

    Args:
        evidence: Of one place.
        clusters: Sorted ids, those of the place among them.
    """
    place = np.searchsorted(clusters, evidence.clusters)
    exposure = evidence.exposure
    if exposure is not None:
        exposure = _spread_exposure(exposure, place, clusters.size)
    return replace(
        evidence,
        numerator=_expand(evidence.numerator, place, clusters.size),
        denominator=_expand(evidence.denominator, place, clusters.size),
        clusters=clusters,
        exposure=exposure,
    )


def subtract(first: Evidence, second: Evidence) -> Evidence:
    """First minus second, each of its own clusters, some of which may be the same."""
    every = np.union1d(first.clusters, second.clusters)
    return spread_over(first, every).minus(spread_over(second, every))


def _spread_exposure(exposure: Exposure, place: NDArray[Any], n: int) -> Exposure:
    own = exposure.clusters
    return replace(exposure, clusters=Spread(_expand(own.share, place, n), own.second, own.third))


def _expand(values: Floats, place: NDArray[Any], n: int) -> Floats:
    wide = np.zeros((n, *values.shape[1:]))
    wide[place] = values
    return wide


def _is_usable(evidence: Evidence) -> bool:
    return bool(np.isfinite(evidence.value) and np.isfinite(evidence.std_error))


def _ratios(evidence: Evidence) -> Floats:
    """The ratios that a quantity is made of, shape (terms,)."""
    return divide(evidence.numerator.sum(axis=0), evidence.denominator.sum(axis=0))


def _error(evidence: Evidence, interval: Interval) -> float:
    """The standard error, or what the width of the interval tells if that is more."""
    low, high = interval(evidence)
    told = (high - low) / 2 / _NORMAL if math.isfinite(high - low) else 0.0
    return max(evidence.std_error, told)


def _covariance(parts: Sequence[Evidence], errors: Floats) -> Floats:
    """Of the values, shape (places, places): clusters that two places share make them go along."""
    every = np.unique(np.concatenate([own.clusters for own in parts]))
    columns = np.zeros((every.size, len(parts)))
    for number, own in enumerate(parts):
        columns[np.searchsorted(every, own.clusters), number] = own.errors
    covariance = columns.T @ columns
    covariance[np.diag_indices(len(parts))] = errors**2
    return covariance


def _freedom(evidence: Evidence) -> float:
    """Degrees of freedom of a variance: about the clusters that make it, less one."""
    return max(effective_number(evidence.errors) - 1, 1.0)


def _welch(q: float, weight: Floats, freedom: Floats) -> float:
    """Welch (1951): Q over its degrees of freedom, with the error of the variances."""
    k = weight.size
    uncertain = float(((1 - weight / weight.sum()) ** 2 / freedom).sum())
    statistic = q / (k - 1) / (1 + 2 * (k - 2) / (k**2 - 1) * uncertain)
    return fisher_tail(statistic, k - 1, (k**2 - 1) / (3 * uncertain))
