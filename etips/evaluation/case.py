"""What a formula of a risk is made from, and how it becomes a function of plain arrays.

A formula takes a `Case` and gives `Evidence`. `Weighted` and `Modelled` make an estimator of it:
arrays in, `Estimate` out, named after the formula.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from etips.evaluation.inference.checks import (
    ClusterLike,
    Clusters,
    Floats,
    check_counts,
    check_numbers,
    check_weights,
    code_clusters,
)
from etips.evaluation.inference.estimate import Estimate
from etips.evaluation.inference.evidence import Bounds, Evidence, ratio_of
from etips.evaluation.inference.exposure import Exposure, expose
from etips.evaluation.inference.intervals import DEFAULT, Interval

UNIT: Bounds = (0.0, 1.0)


@dataclass(frozen=True)
class Case:
    """Checked arrays of one call of an estimator.

    Args:
        loss: Loss of the logged action, shape (n,).
        weight: Policy probability over propensity, shape (n,).
        clusters: The cluster of each decision.
        count: How many times each decision counts, shape (n,); None for once.
    """

    loss: Floats
    weight: Floats
    clusters: Clusters
    count: Floats | None

    @property
    def bounds(self) -> Bounds | None:
        """Where a risk must lie: in 0..1 if all losses do."""
        return UNIT if self.loss.min() >= 0 and self.loss.max() <= 1 else None

    @cached_property
    def sizes(self) -> Floats:
        """Decisions in each cluster: the denominator of every mean, so counted once."""
        return self.clusters.sums(np.ones(self.loss.size) if self.count is None else self.count)

    @cached_property
    def exposure(self) -> Exposure | None:
        """How the losses enter a risk that is made with these weights."""
        return expose(self.loss, self.weight, self.count, self.clusters, self.bounds)

    def mean(self, values: Floats, bounds: Bounds | None = None) -> Evidence:
        """The mean of `values` (n,) over decisions."""
        totals = self.clusters.sums(values if self.count is None else values * self.count)
        columns = totals[:, None], self.sizes[:, None]
        return Evidence(*columns, np.ones(1), self.clusters.ids, bounds, self.exposure)

    def ratio(self, terms: list[tuple[Floats, Floats]], bounds: Bounds | None = None) -> Evidence:
        """Sum of the ratios of totals of each (numerator, denominator), shape (n,) each."""
        sign = (1.0,) * len(terms)
        evidence = ratio_of(self.clusters, terms, count=self.count, sign=sign, bounds=bounds)
        return replace(evidence, exposure=self.exposure)

    def estimate(self, estimator: str, evidence: Evidence, interval: Interval) -> Estimate:
        """The value of `evidence` with an interval around it."""
        return Estimate.of(
            estimator, evidence, weight=self.weight, count=self.count, interval=interval
        )


def make_case(
    loss: ArrayLike, weight: ArrayLike | None, cluster: ClusterLike, count: ArrayLike | None
) -> Case:
    """Check the arrays of a call; without `weight` every decision weighs 1."""
    losses = check_numbers("loss", loss)
    n = losses.size
    weights = np.ones(n) if weight is None else check_weights("weight", weight, n=n)
    return Case(losses, weights, code_clusters(cluster, n=n), check_counts(count, n=n))


def check_model(predicted: ArrayLike, predicted_policy: ArrayLike, n: int) -> tuple[Floats, Floats]:
    """Predicted losses of the logged action and of the policy, shape (n,) each."""
    return (
        check_numbers("predicted", predicted, n=n),
        check_numbers("predicted_policy", predicted_policy, n=n),
    )


class Formula:
    """A formula that is called with plain arrays, under its own name."""

    def __init__(self, formula: Callable[..., Evidence]) -> None:
        self.formula, self.__name__, self.__doc__ = formula, formula.__name__, formula.__doc__


class Weighted(Formula):
    """An estimator that needs weights alone; `risk` says what its arguments are."""

    def __call__(
        self,
        loss: ArrayLike,
        weight: ArrayLike,
        cluster: ClusterLike,
        *,
        count: ArrayLike | None = None,
        interval: Interval = DEFAULT,
    ) -> Estimate:
        """Estimate the risk from weights."""
        case = make_case(loss, weight, cluster, count)
        return case.estimate(self.__name__, self.formula(case), interval)


class Modelled(Formula):
    """An estimator that needs an outcome model too; `risk` says what its arguments are."""

    def __call__(
        self,
        loss: ArrayLike,
        weight: ArrayLike,
        cluster: ClusterLike,
        predicted: ArrayLike,
        predicted_policy: ArrayLike,
        *,
        count: ArrayLike | None = None,
        interval: Interval = DEFAULT,
    ) -> Estimate:
        """Estimate the risk from weights and predicted losses."""
        case = make_case(loss, weight, cluster, count)
        model = check_model(predicted, predicted_policy, case.loss.size)
        return case.estimate(self.__name__, self.formula(case, *model), interval)
