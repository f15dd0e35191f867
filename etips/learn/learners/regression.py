"""A penalised regression of the loss as one more candidate, in the folds of the networks.

Where the loss follows a line in what is visible, a few hundred stays teach it to a regression and
not yet to a network. It is `QLearning` cut into folds: network k and regression k learn from the
same stays and are judged on the same others.
"""

from dataclasses import dataclass, replace

import numpy as np

from etips.data.decisions import Bools, Floats, Ints
from etips.learn.fitting.prepare import Prepared
from etips.learn.learners.row_learner import frame_of
from etips.learn.tabular.lasso import fit_lasso_by
from etips.models.row_model import RowModel

MOST_DECISIONS = 30_000
"""Of a larger log networks learn lines too, and the regression would take as long as a heat."""


@dataclass(frozen=True, eq=False)
class Regression:
    """What regressions found.

    Args:
        model: One member a fold; they answer together.
        expected: Predicted loss of every action, out of fold, shape (n_decisions, n_actions).
    """

    model: RowModel
    expected: Floats

    def least(self, allowed: Bools) -> Ints:
        """The allowed action of least predicted loss at each decision, any where none is."""
        return np.asarray(np.where(allowed, self.expected, np.inf).argmin(axis=1))


def fit_regression(prepared: Prepared) -> Regression | None:
    """Regressions of the loss, one a fold; None where the log is large enough for networks.

    Each learns from the stays that the network of its fold learns from, chooses its penalty by
    those that this network stops by, and is asked about the fold.

    Args:
        prepared: The stays.
    """
    data = prepared.data
    if data.n_decisions > MOST_DECISIONS:
        return None
    rows, frame = frame_of(data, "summary")
    values, stay = rows.double().numpy(), data.decisions().stay
    learns, stops = (
        part.cpu().numpy().astype(bool)[:, stay]
        for part in (prepared.folds.weight, prepared.folds.held_out)
    )
    found = np.stack(
        [
            fit_lasso_by(values, data.logged_action, data.logged_loss, own, held, data.n_actions)
            for own, held in zip(learns, stops, strict=True)
        ]
    )
    model = replace(frame, weight=found[:, :, 1:].transpose(0, 2, 1), base=found[:, :, 0])
    fold, expected = prepared.folds.fold[stay], np.zeros((data.n_decisions, data.n_actions))
    for number, own in enumerate(found):
        asked = fold == number
        expected[asked] = own[:, 0] + values[asked] @ own[:, 1:].T
    return Regression(model, expected)
