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
from etips.evaluation.inference.checks import Bools, Floats, Ints, Rows
from etips.evaluation.row_models import Units, fit_ridge, fit_trees, some_rows

if TYPE_CHECKING:
    from etips.data.trajectories import Trajectories

LEAST_CHANCE = 0.05
"""A chance of being observed below this is raised to it: none stands for more than twenty."""

N_FOLDS = 5
PRIOR = 20  # decisions' worth of the overall mean that each action's mean is averaged with
MOST_FIT = 50_000  # decisions that one fit sees


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
    n_actions = data.n_actions
    taken = np.bincount(action, minlength=n_actions)
    seen = np.bincount(action[observed], minlength=n_actions)
    blind = np.flatnonzero((taken > 0) & (seen == 0))
    if blind.size:
        names = ", ".join(data.schema.actions[a] if data.schema.actions else str(a) for a in blind)
        rule = f"must be known for some decisions of each action, not {names}"
        fix = "Leave its steps out by eligible, or join it with another action."
        raise DataError("loss", rule, fix=fix)
    known = np.where(observed, loss, 0.0)
    fold = np.random.default_rng(0).permutation(data.n_stays)[data.cluster] % N_FOLDS
    rows = visible_rows(data)
    all_rows = np.ones(observed.size, bool)
    chance = _cross_fit(rows, action, n_actions, observed.astype(np.float64), all_rows, fold)
    predicted = _cross_fit(rows, action, n_actions, known, observed, fold)
    low, high = known[observed].min(), known[observed].max()
    return LossModel(
        observed, known, np.clip(chance, LEAST_CHANCE, 1.0), np.clip(predicted, low, high)
    )


def _cross_fit(
    rows: Rows, action: Ints, n_actions: int, target: Floats, known: Bools, fold: Ints
) -> Floats:
    """Mean of `target` given row and action, learned where `known` in other folds, shape (n,).

    Each action's mean, the more drawn towards that of all the rarer it is, then a straight line,
    then boosted trees on what is left.
    """
    taken: Rows = np.eye(n_actions, dtype=np.float32)[action]
    columns = np.concatenate([rows, taken], axis=1)
    result = np.full(target.size, float(target[known].mean()))
    for held in range(N_FOLDS):
        learn = some_rows(np.flatnonzero(known & (fold != held)), MOST_FIT)
        ask = np.flatnonzero(fold == held)
        if learn.size < 2 or ask.size == 0:
            continue
        size = np.bincount(action[learn], minlength=n_actions)
        total = np.bincount(action[learn], target[learn], n_actions)
        means = (total + PRIOR * target[learn].mean()) / (size + PRIOR)
        units, rest = Units.of(rows[learn]), target[learn] - means[action[learn]]
        table = units.standardised(rows[learn])
        base, slope = fit_ridge(table, rest)
        trees = fit_trees(columns[learn], rest - base - table @ slope)
        line = base + units.standardised(rows[ask]) @ slope
        result[ask] = means[action[ask]] + line + trees(columns[ask])
    return result
