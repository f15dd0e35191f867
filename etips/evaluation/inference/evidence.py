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
    """

    numerator: Floats
    denominator: Floats
    sign: Floats
    clusters: NDArray[Any]
    bounds: Bounds | None = None

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
        effect: Floats = self._deviations() @ self.sign
        return effect

    @cached_property
    def jackknife(self) -> Floats:
        """Exact change of the value when each cluster alone is left out, sign reversed, shape (k,).

        For a ratio it is the influence over one minus the cluster's share of the denominator: a
        cluster that carries much of the weight counts for more than its influence says.
        """
        share = divide(self.denominator, self.denominator.sum(axis=0))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((self._deviations() / (1 - share)) @ self.sign)

    @cached_property
    def std_error(self) -> float:
        """Jackknife standard error; infinite when a single cluster carries all the weight."""
        if np.isnan(self.value):
            return float("nan")
        change = self.jackknife
        if not np.isfinite(change).all():
            return float("inf")
        k = change.size
        return float(np.sqrt((k - 1) / k * ((change - change.mean()) ** 2).sum()))

    @property
    def n_clusters(self) -> int:
        """How many clusters there are, those without weight included."""
        return self.clusters.size

    def minus(self, other: "Evidence") -> "Evidence":
        """The paired difference; both must come from the same clusters."""
        if not np.array_equal(self.clusters, other.clusters):
            raise DataError("cluster", "must be the same in both estimates of a paired difference")
        return Evidence(
            np.hstack([self.numerator, other.numerator]),
            np.hstack([self.denominator, other.denominator]),
            np.concatenate([self.sign, -other.sign]),
            self.clusters,
        )

    def _deviations(self) -> Floats:
        below = self.denominator.sum(axis=0)
        ratio = divide(self.numerator.sum(axis=0), below)
        share = ratio * self.denominator
        excess = self.numerator - share
        rounding = np.abs(excess) <= 1e-13 * (np.abs(self.numerator) + np.abs(share))
        return divide(np.where(rounding, 0.0, excess), below)  # a constant loss has no error at all


def divide(above: Floats, below: Floats) -> Floats:
    """`above / below` with NaN, and no warning, where `below` is zero."""
    result = np.full(np.broadcast_shapes(above.shape, below.shape), np.nan)
    np.divide(above, below, out=result, where=below != 0)
    return result


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
