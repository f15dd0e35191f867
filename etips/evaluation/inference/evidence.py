"""The one mechanism behind every estimate: signed sums of ratios of cluster totals.

The mean loss, IPS, SNIPS, DR, a gain over the clinicians, the matched contrast: each is
`sum_j sign_j * (sum_c numerator_cj) / (sum_c denominator_cj)` over clusters c. So each has the same
closed-form influence, jackknife and bootstrap, and two of them can be subtracted in pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from etips.errors import DataError
from etips.evaluation.inference.checks import Clusters, Floats
from etips.evaluation.inference.exposure import Exposure, deviations
from etips.evaluation.inference.exposure import divide as divide

Bounds = tuple[float, float]


@dataclass(frozen=True)
class Evidence:
    """A quantity as a signed sum of ratios of cluster totals.

    Args:
        numerator: Totals above the line, shape (k, terms).
        denominator: Totals below the line, none negative, shape (k, terms).
        sign: Factor of each term, shape (terms,).
        clusters: Ids of the clusters, sorted, shape (k,).
        bounds: The lowest and highest value the truth can take, where known.
        exposure: How losses enter, where the quantity is made of them.
    """

    numerator: Floats
    denominator: Floats
    sign: Floats
    clusters: NDArray[Any]
    bounds: Bounds | None = None
    exposure: Exposure | None = None

    @cached_property
    def value(self) -> float:
        """The point estimate; NaN when a denominator is zero (the policy never matches)."""
        return float(self.values(self.numerator.sum(axis=0), self.denominator.sum(axis=0)))

    def values(self, above: Floats, below: Floats) -> Floats:
        """The quantity from totals over all clusters, shape (..., terms) each."""
        combined: Floats = divide(above, below) @ self.sign
        return combined

    @cached_property
    def influence(self) -> Floats:
        """First-order effect of each cluster on the value, shape (k,); sums to zero."""
        return self._effects[0]

    @cached_property
    def jackknife(self) -> Floats:
        """Exact change of the value when each cluster alone is left out, sign reversed, shape (k,).

        For a ratio it is the influence over one minus the cluster's share of the denominator: a
        cluster that carries much of the weight counts for more than its influence says.
        """
        return self._effects[1]

    @cached_property
    def _effects(self) -> tuple[Floats, Floats]:
        """Influence and jackknife, from one look at the deviations."""
        share = divide(self.denominator, self.denominator.sum(axis=0))
        effect = deviations(self.numerator, self.denominator)
        with np.errstate(divide="ignore", invalid="ignore"):
            change = effect / (1 - share)
            return np.asarray(effect @ self.sign), np.asarray(change @ self.sign)

    @cached_property
    def std_error(self) -> float:
        """Jackknife standard error; infinite when a single cluster carries all the weight."""
        return _error_of(self.value, self.jackknife)

    @cached_property
    def errors(self) -> Floats:
        """Share of each cluster in the error, shape (k,): their squares sum to that squared."""
        return _errors(self.jackknife)

    @property
    def n_clusters(self) -> int:
        """How many clusters there are, those without weight included."""
        return self.clusters.size

    def minus(self, other: "Evidence") -> "Evidence":
        """The paired difference; both must come from the same clusters."""
        if not np.array_equal(self.clusters, other.clusters):
            raise DataError("cluster", "must be the same in both estimates of a paired difference")
        exposure = None
        if self.exposure is not None and other.exposure is not None:
            exposure = self.exposure.minus(other.exposure)
        return Evidence(
            np.hstack([self.numerator, other.numerator]),
            np.hstack([self.denominator, other.denominator]),
            np.concatenate([self.sign, -other.sign]),
            self.clusters,
            exposure=exposure,
        )


@dataclass(frozen=True, eq=False)
class Gap:
    """A paired difference, from what is known of its two sides: `minus`, where many are asked.

    Args:
        first: One quantity.
        second: The other, from the same clusters.
    """

    first: Evidence
    second: Evidence

    @property
    def value(self) -> float:
        """The point estimate; NaN where either has none."""
        return self.first.value - self.second.value

    @property
    def influence(self) -> Floats:
        """First-order effect of each cluster on the value, shape (k,)."""
        return np.asarray(self.first.influence - self.second.influence)

    @cached_property
    def std_error(self) -> float:
        """As of `Evidence`: what a cluster changes in a difference is the difference of both."""
        with np.errstate(invalid="ignore"):
            change = self.first.jackknife - self.second.jackknife
        return _error_of(self.value, change)


def _error_of(value: float, change: Floats) -> float:
    """Standard error by what each cluster changes, shape (k,)."""
    if np.isnan(value):
        return float("nan")
    if not np.isfinite(change).all():
        return float("inf")
    return float(np.sqrt((_errors(change) ** 2).sum()))


def _errors(change: Floats) -> Floats:
    """Share of each cluster in the error, by what it changes, shape (k,)."""
    return np.asarray((change - change.mean()) * np.sqrt((change.size - 1) / change.size))


def ratio_of(
    clusters: Clusters,
    terms: Sequence[tuple[Floats, Floats]],
    *,
    count: Floats | None = None,
    sign: Sequence[float] = (1.0,),
    bounds: Bounds | None = None,
) -> Evidence:
    """Sum decisions within their clusters.

    Args:
        clusters: The cluster of each decision.
        terms: One (numerator, denominator) a term, shape (n,) each.
        count: How many times each decision counts, shape (n,); once if left out.
        sign: One factor a term.
        bounds: As in `Evidence`.
    """
    scaled = terms if count is None else [(above * count, below * count) for above, below in terms]
    return Evidence(
        np.stack([clusters.sums(above) for above, _ in scaled], axis=1),
        np.stack([clusters.sums(below) for _, below in scaled], axis=1),
        np.array(sign, dtype=np.float64),
        clusters.ids,
        bounds,
    )
