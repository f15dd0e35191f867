"""Predicted losses from any scikit-learn classifier, cross-fitted by stay."""

import copy
from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import NDArray

from etips.data.decisions import Floats, Ints
from etips.data.history_rows import (
    Classifier,
    Summary,
    column_means,
    fill_gaps,
    usual_summary,
)
from etips.data.trajectories import Trajectories
from etips.errors import DataError


@dataclass(eq=False)
class SklearnOutcome:
    """A classifier of the loss from a fixed-size summary of the history and the action taken.

    The loss must be 0 or 1. The action enters as 0/1 columns, so that a linear classifier gives it
    the same effect in everybody; trees and products of columns let it differ.

    Args:
        classifier: Of losses 0 and 1. Not fitted yet; it is copied, never changed.
        summary: As in `SklearnModel`, as is what becomes of missing values.
    """

    classifier: Classifier
    _: KW_ONLY
    summary: Summary | None = None

    def cross_fit(self, data: Trajectories, fold: Ints) -> Floats:
        """Predicted loss of every action, by a classifier that did not learn from the stay.

        Args:
            data: Logged stays.
            fold: Fold of each stay, shape (n_stays,).
        """
        loss = data.logged_loss
        if not np.isin(loss, (0.0, 1.0)).all():
            raise DataError("loss", "must be 0 or 1 for a classifier of the loss")
        table = (self.summary or usual_summary(data))(data)
        fold_of_decision = fold[data.decisions().stay]
        expected = np.zeros((data.n_decisions, data.n_actions))
        for number in np.unique(fold):
            inside = fold_of_decision == number
            own = copy.deepcopy(self.classifier)
            rows = fill_gaps(table, column_means(table[~inside]))
            taken = _beside(rows[~inside], data.logged_action[~inside], data.n_actions)
            own.fit(taken, loss[~inside].astype(np.int64))
            for action in range(data.n_actions):
                asked = np.full(int(inside.sum()), action)
                said = own.predict_proba(_beside(rows[inside], asked, data.n_actions))
                expected[inside, action] = _chance_of_one(own, said)
        return expected


def _beside(rows: NDArray[np.float32], action: Ints, n_actions: int) -> NDArray[np.float32]:
    return np.concatenate([rows, np.eye(n_actions, dtype=np.float32)[action]], axis=1)


def _chance_of_one(classifier: object, said: Floats) -> Floats:
    """Probability of loss 1; a fold that saw only one kind of loss knows only that one."""
    classes = list(classifier.classes_)  # type: ignore[attr-defined]
    return said[:, classes.index(1)] if 1 in classes else np.zeros(len(said))
