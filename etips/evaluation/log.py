"""A log of decisions as the evaluation sees it, and a policy seen through it."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from etips.data.history_rows import visible_rows
from etips.errors import DataError, SettingError, require
from etips.evaluation.breadth import breadth
from etips.evaluation.censoring import complete_losses
from etips.evaluation.fold_work import IN_TURN, FoldWork
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


@dataclass(frozen=True)
class Log:
    """Logged decisions, checked once when made.

    Args:
        loss: Loss of the logged action, shape (n,).
        action: Logged actions, shape (n,).
        propensity: Probability of the logged action, shape (n,).
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
        unbalanced: Propensity of the logged action as it was fitted, where `propensity` has been
            balanced since, shape (n,); see `weighed_by`.
        unblended: Predicted losses as networks alone had them, if simpler models have a share in
            `predicted`, shape (n, n_actions).
        folds: Who fits what is fitted fold by fold here.
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
    unbalanced: Floats | None = None
    unblended: Floats | None = None
    folds: FoldWork = field(default=IN_TURN, repr=False, compare=False)
    clusters: Clusters = field(init=False, repr=False, compare=False)
    _whole: "tuple[Log, Bools] | None" = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if self.n_actions < 2:
            raise SettingError("n_actions", "must be at least 2")
        if not 0 <= self.propensity_floor < 1:
            raise SettingError("propensity_floor", "must lie between 0 and 1")
        if self.lag not in (0, 1):
            raise SettingError("lag", "must be 0 or 1")
        loss = check_numbers("loss", self.loss)
        n = loss.size
        self._store("loss", loss)
        self._store("action", check_actions(self.action, n=n, n_actions=self.n_actions))
        self._store("propensity", check_propensity(self.propensity, n=n))
        self._store("cluster", np.asarray(self.cluster))
        self._store("clusters", code_clusters(self.cluster, n=n))
        if self.propensities is not None:
            self._store("propensities", self._check_propensities(self.propensities))
        if self.predicted is not None:
            model = check_table("predicted", self.predicted, n=n, width=self.n_actions)
            self._store("predicted", model)
        if self.features is not None:
            self._store("features", check_features(self.features, n=n))
        if self.unbalanced is not None:
            self._store("unbalanced", check_propensity(self.unbalanced, n=n))

    @classmethod
    def of(
        cls,
        data: "Trajectories",
        *,
        propensities: Floats | None = None,
        predicted: Floats | None = None,
        floor: float = PROPENSITY_FLOOR,
        known: bool | None = None,
        folds: FoldWork = IN_TURN,
    ) -> Self:
        """The decisions of `data`; whoever the data names as patients are its clusters.

        Propensities that are known stand as they are; estimated ones are raised to `floor`.

        Args:
            data: Logged stays.
            propensities: Probability of every action, shape (n_decisions, n_actions): estimated,
                and needed, where the data does not know that of the logged action.
            predicted: Predicted loss of every action, shape (n_decisions, n_actions).
            floor: Estimated propensities below this are raised to it.
            known: Whether the propensities are known by design; if left out, those in the data are.
            folds: Who fits what is fitted fold by fold.
        """
        data = complete_losses(data)
        by_design = data.propensity is not None if known is None else known
        if by_design or data.propensity is not None:
            floor = 0.0
        if data.propensity is not None:
            chance = data.logged_propensity
        elif propensities is not None:
            own = np.arange(data.n_decisions), data.logged_action
            chance = np.maximum(propensities[own], floor)
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
            folds=folds,
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
        return cross_fit(
            self.features, target, self.clusters, self.action, self.n_actions, self.folds
        )

    @cached_property
    def rows(self) -> Ints:
        """0..n-1, to pick the logged action from a table."""
        return np.arange(self.n_decisions)

    def take(self, keep: NDArray[np.bool_]) -> "Log":
        """The decisions for which `keep` (n,) holds; what all of them lead to expect stays."""
        part = Log(
            loss=self.loss[keep],
            action=self.action[keep],
            propensity=self.propensity[keep],
            cluster=self.cluster[keep],
            n_actions=self.n_actions,
            propensities=None if self.propensities is None else self.propensities[keep],
            predicted=None if self.predicted is None else self.predicted[keep],
            propensity_floor=self.propensity_floor,
            features=None if self.features is None else self.features[keep],
            known=self.known,
            lag=self.lag,
            unbalanced=None if self.unbalanced is None else self.unbalanced[keep],
            unblended=None if self.unblended is None else self.unblended[keep],
        )
        part._store("_whole", (self, keep))
        return part

    def weighed_by(self, propensities: Floats) -> "Log":
        """The same decisions with better propensities of all actions, shape (n, n_actions)."""
        chance = np.maximum(propensities[self.rows, self.action], self.propensity_floor)
        first = self.propensity if self.unbalanced is None else self.unbalanced
        other = replace(self, propensity=chance, propensities=propensities, unbalanced=first)
        other._store("_whole", (self, np.ones(self.n_decisions, bool)))
        return other

    def predicting(self, predicted: Floats) -> "Log":
        """The same decisions with better predicted losses of all actions, shape (n, n_actions)."""
        other = replace(self, predicted=predicted, unblended=self.predicted)
        other._store("expected", self.expected)  # which has nothing to do with them
        return other

    @cached_property
    def as_networks_predicted(self) -> "Log":
        """The same decisions with predicted losses as networks alone had them."""
        if self.unblended is None:
            return self
        other = replace(self, predicted=self.unblended, unblended=None)
        if self._whole is not None:
            whole, keep = self._whole
            other._store("_whole", (whole.as_networks_predicted, keep))
        other._store("expected", self.expected)
        return other

    def _check_propensities(self, values: Floats) -> Floats:
        n = self.loss.size
        table = check_probabilities("propensities", values, n=n, n_actions=self.n_actions)
        raised = np.maximum(table[self.rows, self.action], self.propensity_floor)
        agrees = np.abs(raised - self.propensity) <= 1e-6
        rule = "must hold the propensity of the logged action, before it is raised to the floor"
        require("propensities", rule, agrees)
        return table

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
        log: The decisions.
        probabilities: The policy's distribution at each decision, shape (n, n_actions).
        abstains: Where it leaves the decision to the clinicians, shape (n,). If left out, where its
            probabilities are the log's own propensities of every action.
    """
    table = check_probabilities(
        "probabilities", probabilities, n=log.n_decisions, n_actions=log.n_actions
    )
    silent = _abstains(log, table, abstains)
    weight = weigh_logged(table[log.rows, log.action], log.propensity)
    weight = np.where(silent, 1.0, weight)
    recommended = table.argmax(axis=1)
    if log.predicted is None:
        return View(table, recommended, weight, abstains=silent)
    taken = log.predicted[log.rows, log.action]
    averaged = np.einsum("na,na->n", table, log.predicted)
    return View(
        table,
        recommended,
        weight,
        predicted=taken,
        predicted_policy=np.where(silent, taken, averaged),
        abstains=silent,
    )


def _abstains(log: Log, table: Floats, given: ArrayLike | None) -> Bools:
    if given is not None:
        silent = np.asarray(given)
        if silent.dtype != np.bool_ or silent.shape != (log.n_decisions,):
            raise DataError("abstains", "must hold yes or no for every decision")
        return silent
    if log.propensities is None:
        return np.zeros(log.n_decisions, dtype=np.bool_)
    return np.asarray(np.abs(table - log.propensities).max(axis=1) <= SAME)
