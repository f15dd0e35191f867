"""Losses that were not observed: stand-ins that are right on average, and what they rest on.

Whether a loss is observed may depend on what was visible and on the action. Two models are
cross-fitted by patient: the chance that the loss is observed, and the loss itself where it is. The
stand-in for a decision's loss is the model's loss, plus, where the loss was observed, its distance
from it over the chance: a decision that had one chance in four of being observed speaks for four.
Its mean given what was visible and the action is that of the loss if either model is right, so
whatever is learned or estimated from stand-ins is about all decisions.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from etips.data.history_rows import visible_rows
from etips.errors import DataError
from etips.evaluation.boosted_trees import Bins, fit_trees
from etips.evaluation.feature_tables import Units, some_rows, with_one
from etips.evaluation.inference.checks import Bools, Floats, Ints, Rows

if TYPE_CHECKING:
    from etips.data.trajectories import Trajectories

LEAST_CHANCE = 0.05
"""A chance of being observed below this is raised to it: none stands for more than twenty."""

N_FOLDS = 5
PRIOR = 20  # decisions' worth of the overall mean that each action's mean is averaged with
PENALTY = 0.01  # of the straight line, in units of the features' variance
MOST_FIT = 50_000  # decisions that one fit sees
REACH = 4.0  # standard deviations beyond which a value is as good as that


@dataclass(frozen=True)
class LossModel:
    """What is known and estimated of the losses of all decisions, one entry each.

    Args:
        observed: Whether the loss is known, shape (n,).
        loss: The loss, 0 where it is not known, shape (n,).
        chance: Estimated chance of being observed, given what was visible and the action, (n,).
        predicted: Estimated loss, given the same, shape (n,).
    """

    observed: Bools
    loss: Floats
    chance: Floats
    predicted: Floats

    @property
    def raised_share(self) -> float:
        """Share of the decisions whose chance was raised to the least."""
        return float((self.chance <= LEAST_CHANCE).mean())

    @property
    def stand_in(self) -> Floats:
        """One number a decision with the expectation of its loss, shape (n,)."""
        return self.corrected(1 / self.chance)

    def corrected(self, factor: Floats) -> Floats:
        """The predicted loss plus `factor` (n,) times the error where there is one to be seen."""
        error = np.where(self.observed, self.loss - self.predicted, 0.0)
        return np.asarray(self.predicted + factor * error)

    def complete(self, data: "Trajectories") -> "Trajectories":
        """The same stays with the stand-ins as losses: every action has one now."""
        assert data.loss is not None
        loss = np.array(data.loss)
        loss[data.decision_rows] = self.stand_in
        return replace(data, loss=loss)


def complete_losses(data: "Trajectories") -> "Trajectories":
    """`data` as it is, or with stand-ins where it asks to weight for missing losses."""
    model = model_losses(data)
    return data if model is None else model.complete(data)


def model_losses(data: "Trajectories") -> LossModel | None:
    """Fit what the stand-ins need; None where no decision of `data` lacks a loss.

    An action of which no loss at all is observed is refused: nothing can speak for it.
    """
    if data.missing_loss == "drop" or not data.logged or data.n_decisions == 0:
        return None
    loss, action = data.logged_loss, data.logged_action
    observed = ~np.isnan(loss)
    if observed.all():
        return None
    _require_observed(observed, data)
    known = np.where(observed, loss, 0.0)
    fold = np.random.default_rng(0).permutation(data.n_stays)[data.cluster] % N_FOLDS
    rows = visible_rows(data)
    everybody = np.ones(observed.size, bool)
    seen = observed.astype(np.float64)
    chance = _cross_fit(rows, action, data.n_actions, seen, everybody, fold)
    predicted = _cross_fit(rows, action, data.n_actions, known, observed, fold)
    low, high = known[observed].min(), known[observed].max()
    return LossModel(
        observed, known, np.clip(chance, LEAST_CHANCE, 1.0), np.clip(predicted, low, high)
    )


def _require_observed(observed: Bools, data: "Trajectories") -> None:
    action, n_actions = data.logged_action, data.n_actions
    taken = np.bincount(action, minlength=n_actions)
    seen = np.bincount(action[observed], minlength=n_actions)
    blind = np.flatnonzero((taken > 0) & (seen == 0))
    if blind.size:
        names = ", ".join(data.schema.actions[a] if data.schema.actions else str(a) for a in blind)
        fix = "Leave its steps out by eligible, or join it with another action."
        raise DataError(
            "loss", f"must be known for some decisions of each action, not {names}", fix=fix
        )


def _cross_fit(
    rows: Rows, action: Ints, n_actions: int, target: Floats, known: Bools, fold: Ints
) -> Floats:
    """Mean of `target` given row and action, learned where `known` in other folds, shape (n,).

    Each action's mean, then a straight line, then boosted trees on what is left.
    """
    taken: Rows = np.eye(n_actions, dtype=np.float32)[action]
    columns = np.concatenate([rows, taken], axis=1)
    bins = Bins.of(columns[some_rows(np.arange(len(columns)), MOST_FIT)])
    result = np.full(target.size, float(target[known].mean()))
    for held in range(N_FOLDS):
        learn, ask = (
            some_rows(np.flatnonzero(known & (fold != held)), MOST_FIT),
            np.flatnonzero(fold == held),
        )
        if learn.size < 2 or ask.size == 0:
            continue
        units = Units.of(rows[learn].astype(np.float64))
        means = _action_means(action[learn], target[learn], n_actions)
        table = with_one(units.standardised(rows[learn], REACH))
        rest = target[learn] - means[action[learn]]
        slope = _slopes(table, rest)
        rest = rest - table @ slope
        trees = fit_trees(bins.code(columns[learn]), rest, seed=0)
        line = with_one(units.standardised(rows[ask], REACH)) @ slope
        result[ask] = means[action[ask]] + line + trees.predict(bins.code(columns[ask]))
    return result


def _action_means(action: Ints, target: Floats, n_actions: int) -> Floats:
    """Each action's mean, drawn towards that of all the more the rarer it is."""
    size = np.bincount(action, minlength=n_actions)
    total = np.bincount(action, target, n_actions)
    return np.asarray((total + PRIOR * target.mean()) / (size + PRIOR))


def _slopes(table: Floats, target: Floats) -> Floats:
    square = table.T @ table / len(table)
    square[np.diag_indices_from(square)] += PENALTY
    return np.asarray(np.linalg.solve(square, table.T @ target / len(table)))
