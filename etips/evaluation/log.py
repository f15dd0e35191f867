"""A log of decisions as the evaluation sees it, and a policy seen through it."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from etips.data.history_rows import visible_rows
from etips.errors import DataError, SettingError, require
from etips.evaluation.censoring import complete_losses
from etips.evaluation.inference.checks import (
    Bools,
    Clusters,
    Floats,
    Ints,
    Rows,
    check_actions,
    check_features,
    check_numbers,
    check_probabilities,
    check_propensity,
    check_table,
    code_clusters,
    weigh_logged,
)
from etips.evaluation.prognosis import Expected, cross_fit

if TYPE_CHECKING:
    from etips.data.trajectories import Trajectories

SAME = 1e-12  # a policy that repeats the propensities, to rounding, leaves it to the clinicians

PROPENSITY_FLOOR = 0.01
"""Estimated propensities below this are raised to it, unless a caller says otherwise: one decision
then weighs at most a hundred."""


ARRAYS = (
    *("loss", "action", "propensity", "cluster", "propensities", "predicted", "features"),
    *("plain_propensity", "plain_predicted"),
)
"""Fields of a log that have an entry a decision."""


@dataclass(frozen=True)
class Log:
    """Logged decisions, checked once when made.

    Args:
        cluster: Stay or patient of each decision, shape (n,).
        n_actions: How many actions there are.
        propensities: Probability of every action, where known, shape (n, n_actions). With it the
            verdict sees gaps in overlap that no logged action shows.
        predicted: An outcome model's loss for every action, shape (n, n_actions), made without the
            decisions it predicts.
        propensity_floor: The value that smaller propensities were raised to; 0 for none.
        features: What was visible at each decision, one row each; NaN where missing, shape (n, d).
            With it the verdict sees whether the weights balance the patients' prognosis.
        known: The propensities are known by design, not estimated.
        lag: 1 if the rows hold only what came before the decision's own step.
        plain_propensity: Propensity of the logged action as one model alone has it, where
            `propensity` is of several that were stacked, shape (n,). The verdict asks both.
        plain_predicted: Predicted losses as that model alone has them, shape (n, n_actions).
    """

    loss: Floats
    action: Ints
    propensity: Floats
    cluster: NDArray[Any]
    n_actions: int
    propensities: Floats | None = None
    predicted: Floats | None = None
    propensity_floor: float = 0.0
    features: Rows | None = None
    known: bool = False
    lag: int = 0
    plain_propensity: Floats | None = None
    plain_predicted: Floats | None = None
    clusters: Clusters = field(init=False, repr=False, compare=False)
    _whole: "tuple[Log, Bools] | None" = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if self.n_actions < 2:
            raise SettingError("n_actions", "must be at least 2")
        if not 0 <= self.propensity_floor < 1:
            raise SettingError("propensity_floor", "must lie between 0 and 1")
        if self.lag not in (0, 1):
            raise SettingError("lag", "must be 0 or 1")
        n = np.size(self.loss)
        self._store("loss", check_numbers("loss", self.loss))
        self._store("action", check_actions(self.action, n=n, n_actions=self.n_actions))
        self._store("propensity", check_propensity(self.propensity, n=n))
        self._store("cluster", np.asarray(self.cluster))
        self._store("clusters", code_clusters(self.cluster, n=n))
        for name in ("predicted", "plain_predicted"):
            if (table := getattr(self, name)) is not None:
                self._store(name, check_table("predicted", table, n=n, width=self.n_actions))
        if self.features is not None:
            self._store("features", check_features(self.features, n=n))
        if self.plain_propensity is not None:
            self._store("plain_propensity", check_propensity(self.plain_propensity, n=n))
        if self.propensities is not None:
            values, k = self.propensities, self.n_actions
            table = check_probabilities("propensities", values, n=n, n_actions=k)
            raised = np.maximum(table[self.rows, self.action], self.propensity_floor)
            rule = "must hold the propensity of the logged action, before it is raised to the floor"
            require("propensities", rule, np.abs(raised - self.propensity) <= 1e-6)
            self._store("propensities", table)

    @classmethod
    def of(
        cls,
        data: "Trajectories",
        *,
        propensities: Floats | None = None,
        predicted: Floats | None = None,
        floor: float = PROPENSITY_FLOOR,
        known: bool | None = None,
    ) -> Self:
        """The decisions of `data`; its patients, where it names them, are the clusters.

        Propensities that are known stand as they are; estimated ones are raised to `floor`.

        Args:
            data: Logged stays.
            propensities: Probability of every action, shape (n_decisions, n_actions): estimated,
                and needed, where the data does not know that of the logged action.
            predicted: Predicted loss of every action, shape (n_decisions, n_actions).
            floor: Estimated propensities below this are raised to it.
            known: Whether the propensities are known by design; if left out, those in the data are.
        """
        data = complete_losses(data)
        by_design = data.propensity is not None if known is None else known
        if by_design or data.propensity is not None:
            floor = 0.0
        if data.propensity is not None:
            chance = data.logged_propensity
        elif propensities is not None:
            logged = np.arange(data.n_decisions), data.logged_action
            chance = np.maximum(propensities[logged], floor)
        else:
            raise DataError("propensities", "must be given where the data knows none")
        return cls(
            loss=data.logged_loss,
            action=data.logged_action,
            propensity=chance,
            cluster=data.cluster,
            n_actions=data.n_actions,
            propensities=propensities,
            predicted=predicted,
            propensity_floor=floor,
            features=visible_rows(data),
            known=by_design,
            lag=data.lag,
        )

    @property
    def n_decisions(self) -> int:
        """How many decisions there are."""
        return self.loss.size

    @cached_property
    def expected(self) -> Expected | None:
        """Expected loss from what was visible, cross-fitted by cluster; None without features."""
        if self._whole is not None:
            whole, keep = self._whole
            return None if whole.expected is None else whole.expected.take(keep)
        return self._expect(self.loss)

    @cached_property
    def breadth(self) -> float | None:
        """How many different things were visible at a decision; None without features."""
        return None if self.features is None else breadth(self.features)

    @property
    def prognosis(self) -> Floats | None:
        """Expected loss from what was visible, whatever is done, shape (n,)."""
        return None if self.expected is None else self.expected.plain

    @cached_property
    def expected_residual(self) -> Expected | None:
        """The same of what the predicted losses leave; None without features or predictions."""
        if self.predicted is None:
            return None
        if self._whole is not None:
            whole, keep = self._whole
            left = whole.expected_residual
            return None if left is None else left.take(keep)
        return self._expect(self.loss - self.predicted[self.rows, self.action])

    def _expect(self, target: Floats) -> Expected | None:
        if self.features is None:
            return None
        return cross_fit(self.features, target, self.clusters, self.action, self.n_actions)

    @cached_property
    def rows(self) -> Ints:
        """0..n-1, to pick the logged action from a table."""
        return np.arange(self.n_decisions)

    def take(self, keep: NDArray[np.bool_]) -> "Log":
        """The decisions for which `keep` (n,) holds; what all of them lead to expect stays."""
        arrays = ((name, getattr(self, name)) for name in ARRAYS)
        parts: Any = {name: table[keep] for name, table in arrays if table is not None}
        part = replace(self, **parts)
        part._store("_whole", (self, keep))
        return part

    def beside(self, propensities: Floats | None, predicted: Floats | None) -> "Log":
        """The same with what one of the stacked models alone says of all actions, (n, K) each."""
        plain = None
        if propensities is not None:
            plain = np.maximum(propensities[self.rows, self.action], self.propensity_floor)
        return replace(self, plain_propensity=plain, plain_predicted=predicted)

    @cached_property
    def as_plainly_predicted(self) -> "Log":
        """The same decisions with predicted losses as one model alone has them."""
        if self.plain_predicted is None:
            return self
        other = replace(self, predicted=self.plain_predicted, plain_predicted=None)
        if self._whole is not None:
            whole, keep = self._whole
            other._store("_whole", (whole.as_plainly_predicted, keep))
        other._store("expected", self.expected)
        return other

    def _store(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)


@dataclass(frozen=True)
class View:
    """A policy seen through a log; made by `view`.

    Args:
        probabilities: The policy's distribution at each decision, shape (n, n_actions).
        recommended: Its likeliest action, shape (n,).
        weight: Policy probability over propensity of the logged action, shape (n,).
        predicted: The outcome model's loss for the logged action, shape (n,).
        predicted_policy: The same averaged over the policy, shape (n,).
        abstains: Where it leaves the decision to the clinicians, shape (n,).
    """

    probabilities: Floats
    recommended: Ints
    weight: Floats
    predicted: Floats | None = None
    predicted_policy: Floats | None = None
    abstains: Bools | None = None


def view(log: Log, probabilities: ArrayLike, abstains: ArrayLike | None = None) -> View:
    """Weigh the decisions of `log` as the policy with these `probabilities` would.

    Where it abstains the clinicians decide: the weight is exactly 1, whatever the propensities, and
    the predicted loss is that of what they did.

    Args:
        probabilities: The policy's distribution at each decision, shape (n, n_actions).
        abstains: Where it leaves the decision to the clinicians, shape (n,). If left out, where its
            probabilities are the log's own propensities of every action.
    """
    table = check_probabilities(
        "probabilities", probabilities, n=log.n_decisions, n_actions=log.n_actions
    )
    n = log.n_decisions
    if abstains is not None:
        silent = np.asarray(abstains)
        if silent.dtype != np.bool_ or silent.shape != (n,):
            raise DataError("abstains", "must hold yes or no for every decision")
    elif log.propensities is None:
        silent = np.zeros(n, dtype=np.bool_)
    else:
        silent = np.asarray(np.abs(table - log.propensities).max(axis=1) <= SAME)
    weight = weigh_logged(table[log.rows, log.action], log.propensity)
    seen = View(table, table.argmax(axis=1), np.where(silent, 1.0, weight), abstains=silent)
    if log.predicted is None:
        return seen
    taken = log.predicted[log.rows, log.action]
    averaged = np.einsum("na,na->n", table, log.predicted)
    return replace(seen, predicted=taken, predicted_policy=np.where(silent, taken, averaged))


MOST_ROWS = 5_000


def breadth(features: Rows) -> float:
    """Columns that vary, those that say the same counted once.

    Their number squared over the sum of all squared correlations, known as participation ratio.

    Args:
        features: One row a decision, NaN where missing, shape (n, d).
    """
    table = np.asarray(features[:: -(-len(features) // MOST_ROWS)], np.float64)
    known = np.isfinite(table)
    count = np.maximum(known.sum(axis=0), 1)
    centre = np.where(known, table, 0.0).sum(axis=0) / count
    centred = np.where(known, table - centre, 0.0)
    size = np.sqrt((centred**2).sum(axis=0))
    varies = size > 1e-9 * (1 + np.abs(centre)) * np.sqrt(len(table))
    if not varies.any():
        return 0.0
    unit = centred[:, varies] / size[varies]
    return float(varies.sum() ** 2 / ((unit.T @ unit) ** 2).sum())
