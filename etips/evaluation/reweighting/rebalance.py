"""Correct fitted propensities where that brings held-out decisions into balance."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from etips.errors import DataError
from etips.evaluation.fold_work import IN_TURN, FoldWork
from etips.evaluation.inference.checks import (
    Bools,
    Clusters,
    Floats,
    Ints,
    Rows,
    check_actions,
    check_numbers,
    check_probabilities,
    code_clusters,
)
from etips.evaluation.reweighting.balance_functions import (
    MOST_CHOSEN_BY,
    MOST_FUNCTIONS,
    BalanceFunctions,
    choose_functions,
    every_so_many,
)
from etips.evaluation.reweighting.imbalance import less_by, measure_imbalance
from etips.evaluation.reweighting.tilt import ENOUGH, LEAST, fit_tilt, log_table, tilted

N_FOLDS = 5
LEAST_CLUSTERS = 30
"""Stays below which no correction is tried: none could show that it is more than noise."""

MOST_ROWS = 50_000
"""Decisions that theta is fitted to: five hundred numbers need no more."""


@dataclass(frozen=True)
class Effort:
    """How closely theta is fitted.

    Args:
        most_rows: Decisions that it is fitted to.
        enough: Slope at which it has arrived.
    """

    most_rows: int = MOST_ROWS
    enough: float = ENOUGH


BEYOND_NOISE, BETTER = 1.64, 1.0
"""Standard errors by which held-out decisions must be better: by the first in balance or in
likelihood; in likelihood by the second at least, for with right propensities it falls. Of 450
tables of right propensities (three kinds of world, 300 to 1,000 stays) 8 were touched, without
harm; 18 with 0.5 for the second, 2 if the likelihood alone decides. The latter misses attenuated
propensities, whose likelihood is nearly as good and whose balance is not."""


@dataclass(frozen=True, eq=False)
class Correction:
    """What propensities are to be multiplied with, as learned from some stays.

    Args:
        functions: Of what is visible.
        theta: How much of each goes into the logit of each action, shape (q, n_actions).
    """

    functions: BalanceFunctions
    theta: Floats

    def apply(self, propensities: Floats, features: Rows, prognosis: Floats) -> Floats:
        """The corrected table, shape (n, n_actions).

        Args:
            propensities: Before, shape (n, n_actions).
            features: What was visible, shape (n, d).
            prognosis: Expected loss given that, shape (n,).
        """
        values = self.functions.of(features, prognosis)
        return tilted(log_table(propensities), values, self.theta)


@dataclass(frozen=True, eq=False)
class Rebalanced:
    """A table of propensities, corrected where that helped, and what it did to held-out decisions.

    Args:
        propensities: Corrected, or as they were, shape (n, n_actions).
        used: Whether they are corrected.
        before: How far weighting by one over the propensity moves the mean prognosis of an action's
            decisions away from everybody's, in units of the loss: root mean square over actions.
        after: The same with the correction, whether it is used or not.
        log_loss: Mean of minus the log-propensity of the logged action, before.
        log_loss_after: The same with the correction.
    """

    propensities: Floats
    used: bool
    before: float
    after: float
    log_loss: float
    log_loss_after: float

    @property
    def sentence(self) -> str:
        """What was done, in words."""
        if self.used:
            return (
                f"balanced: imbalance of the prognosis {self.before:.3f} before, "
                f"{self.after:.3f} after"
            )
        return (
            f"left as fitted: imbalance of the prognosis {self.before:.3f}, and balancing does not "
            "improve held-out stays beyond chance"
        )


@dataclass(frozen=True, eq=False)
class Decided:
    """Decisions that a correction is learned from.

    Args:
        action: Taken, shape (n,).
        loss: Logged, shape (n,).
        features: What was visible, shape (n, d); gaps may be NaN.
        prognosis: Expected loss given that, without the action, cross-fitted, shape (n,).
    """

    action: Ints
    loss: Floats
    features: Rows
    prognosis: Floats

    def __post_init__(self) -> None:
        n = check_numbers("loss", self.loss).size
        check_numbers("prognosis", self.prognosis, n=n)
        if self.features.ndim != 2 or len(self.features) != n:
            raise DataError("features", "must have one row a decision")

    def take(self, keep: Bools | Ints | slice) -> "Decided":
        """Some of the decisions."""
        return Decided(
            self.action[keep], self.loss[keep], self.features[keep], self.prognosis[keep]
        )


def fit_correction(
    propensities: Floats, decided: Decided, effort: Effort | None = None, rows: Ints | None = None
) -> Correction:
    """Learn a correction of propensities (n, n_actions) from stays that it will not be used on.

    Args:
        propensities: Of every action, shape (n, n_actions).
        decided: The decisions.
        effort: How closely theta is fitted.
        rows: Decisions that are learned from, ascending; all if left out. No more of them are
            looked at than are of use.
    """
    effort = effort or Effort()
    rows = np.arange(len(decided.action)) if rows is None else rows
    some = every_so_many(rows, MOST_CHOSEN_BY)
    few, residual = decided.take(some), -propensities[some]
    residual[np.arange(len(some)), few.action] += 1
    functions = choose_functions(few.features, few.prognosis, few.loss, residual)
    some = every_so_many(rows, effort.most_rows)
    values = functions.of(decided.features, decided.prognosis, some)
    before, action = log_table(propensities[some]), decided.action[some]
    return Correction(functions, fit_tilt(before, values, action, enough=effort.enough))


def rebalance(
    propensities: ArrayLike,
    decided: Decided,
    cluster: ArrayLike | Clusters,
    *,
    fold: Ints | None = None,
    effort: Effort | None = None,
    folds: FoldWork = IN_TURN,
) -> Rebalanced:
    """Correct propensities fold by fold; keep that if it improves balance on held-out decisions.

    The correction of a fold is learned from the other folds, so that nobody's propensity knows what
    was done to them. It stays if, weighted by one over the propensity of their action, decisions
    resemble all decisions better than before and if their log-loss falls, one of both beyond noise.

    Args:
        propensities: Of every action, from models that did not see the decision's stay, shape
            (n, n_actions).
        decided: What was done, what came of it, and what was visible.
        cluster: Stay or patient of each decision, shape (n,).
        fold: Of each decision, shape (n,); whole clusters, at random, if left out.
        effort: How closely the correction is fitted; as an evaluation needs it if left out.
        folds: Who does the work of the folds.
    """
    n = decided.loss.size
    table = check_probabilities("propensities", propensities, n=n)
    check_actions(decided.action, n=n, n_actions=table.shape[1])
    clusters = code_clusters(cluster, n=n)
    parts = _deal(clusters) if fold is None else np.unique(fold, return_inverse=True)[1]
    enough = clusters.size >= LEAST_CLUSTERS and parts.max() > 0
    if not enough or float(np.ptp(decided.prognosis)) == 0:
        return _compare(table, table, decided, decided.prognosis[:, None], clusters)
    after, values = _cross_fit(table, decided, parts, effort, folds)
    return _compare(table, after, decided, values, clusters)


def _deal(clusters: Clusters) -> Ints:
    """A fold for every decision, by cluster."""
    number = np.random.default_rng(0).permutation(clusters.size) % N_FOLDS
    return np.asarray(number[clusters.code])


def _cross_fit(
    table: Floats, decided: Decided, fold: Ints, effort: Effort | None, folds: FoldWork
) -> tuple[Floats, Floats]:
    """The corrected table, and the functions that the other folds chose, by decision.

    A function may differ from fold to fold; right weights balance it all the same.
    """
    n = decided.loss.size
    after = folds.zeros(table.shape, np.float64)
    values = folds.zeros((n, 1 + MOST_FUNCTIONS), np.float64)

    def fit(number: int) -> None:
        inside = np.flatnonzero(fold == number)
        correction = fit_correction(table, decided, effort, np.flatnonzero(fold != number))
        own = correction.functions.of(decided.features, decided.prognosis, inside)
        after[inside] = tilted(log_table(table[inside]), own, correction.theta)
        values[inside, : own.shape[1] - 1] = own[:, 1:]

    folds.do(fit, int(fold.max()) + 1)
    return after, values


def _compare(
    table: Floats, after: Floats, decided: Decided, values: Floats, clusters: Clusters
) -> Rebalanced:
    """Keep the corrected table if it is better on decisions that it was not learned from."""
    action, spread = decided.action, float(decided.prognosis.std())
    old, new = measure_imbalance((table, after), action, values)
    logs = [np.log(np.maximum(own[np.arange(len(own)), action], LEAST)) for own in (table, after)]
    likelier = clusters.sums(logs[1] - logs[0])
    noise = float(likelier.std()) * np.sqrt(clusters.size)
    gain = float(likelier.sum()) / noise if noise > 0 else 0.0
    less = less_by(old, new, clusters)
    used = less > 0 and gain > BETTER and max(gain, less) > BEYOND_NOISE
    return Rebalanced(
        propensities=after if used else table,
        used=bool(used),
        before=old.prognosis * spread,
        after=new.prognosis * spread,
        log_loss=float(-logs[0].mean()),
        log_loss_after=float(-logs[1].mean()),
    )
