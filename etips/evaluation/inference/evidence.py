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
        effect: Floats = deviations(self.numerator, self.denominator) @ self.sign
        return effect

    @cached_property
    def jackknife(self) -> Floats:
        """Exact change of the value when each cluster alone is left out, sign reversed, shape (k,).

        For a ratio it is the influence over one minus the cluster's share of the denominator: a
        cluster that carries much of the weight counts for more than its influence says.
        """
        share = divide(self.denominator, self.denominator.sum(axis=0))
        with np.errstate(divide="ignore", invalid="ignore"):
            change = deviations(self.numerator, self.denominator) / (1 - share)
            return np.asarray(change @ self.sign)

    @cached_property
    def std_error(self) -> float:
        """Jackknife standard error; infinite when a single cluster carries all the weight."""
        if np.isnan(self.value):
            return float("nan")
        change = self.jackknife
        if not np.isfinite(change).all():
            return float("inf")
        return float(np.sqrt((self.errors**2).sum()))

    @cached_property
    def errors(self) -> Floats:
        """Share of each cluster in the error, shape (k,): their squares sum to that squared."""
        k = self.n_clusters
        return np.asarray((self.jackknife - self.jackknife.mean()) * np.sqrt((k - 1) / k))

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
