"""A penalised regression of the loss as one more candidate, in the folds of the networks.

Where the loss follows a line in what is visible, a few hundred stays teach it to a regression and
not yet to a network. It is `QLearning` cut into folds: network k and regression k learn from the
same stays and are judged on the same others.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from etips.data.decisions import Bools, Floats, Ints
from etips.data.trajectories import Trajectories
from etips.learn.fitting.prepare import Prepared
from etips.learn.learners.row_learner import frame_of
from etips.learn.tabular.lasso import fit_lasso_by
from etips.learn.training.beside import Arrays, Beside
from etips.models.row_model import Reads, RowModel

MOST_DECISIONS = 30_000
"""Of a larger log networks learn lines too, and the regression would take as long as a heat."""

READS: Reads = "summary"


@dataclass(frozen=True, eq=False)
class Regression:
    """What regressions found.

    Args:
        model: One member a fold; they answer together.
        expected: Predicted loss of every action, out of fold, shape (n_decisions, n_actions).
        floor: Least propensity that it may go down to beside the usual one; None where it must keep
            to that. See `lower_floor`.
    """

    model: RowModel
    expected: Floats
    floor: float | None = None

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
    if prepared.data.n_decisions > MOST_DECISIONS:
        return None
    return _regression(_work(prepared)(), n_actions=prepared.data.n_actions)


def begin_regression(prepared: Prepared) -> Callable[[], Regression | None]:
    """The same, begun in a process of its own where there can be one; call it for the answer."""
    data = prepared.data
    if data.n_decisions > MOST_DECISIONS:
        return lambda: None
    made = partial(_regression, n_actions=data.n_actions)
    return Beside(_work(prepared), made, data, prepared.steps.device)


def _work(prepared: Prepared) -> Callable[[], Arrays]:
    """What a process can do: it must not touch a GPU, so folds come from there before."""
    folds = prepared.folds
    learns, stops = (part.cpu().numpy().astype(bool) for part in (folds.weight, folds.held_out))
    return partial(_fit, prepared.data, folds.fold, learns, stops)


def _regression(arrays: Arrays, *, n_actions: int) -> Regression:
    own = {name: values for name, values in arrays.items() if name != "expected"}
    model = RowModel.from_arrays(own, reads=READS, form="linear", n_outputs=n_actions)
    return Regression(model, arrays["expected"])


def _fit(data: Trajectories, fold: Ints, learns: Bools, stops: Bools) -> Arrays:
    """The regressions; fold (n_stays,), who learns from and stops by whom (n_networks, n_stays)."""
    rows, frame = frame_of(data, READS)
    values, stay = rows.double().numpy(), data.decisions().stay
    learns, stops, fold = learns[:, stay], stops[:, stay], fold[stay]
    found = np.stack(
        [
            fit_lasso_by(values, data.logged_action, data.logged_loss, own, held, data.n_actions)
            for own, held in zip(learns, stops, strict=True)
        ]
    )
    model = replace(frame, weight=found[:, :, 1:].transpose(0, 2, 1), base=found[:, :, 0])
    expected = np.zeros((data.n_decisions, data.n_actions))
    for number, own in enumerate(found):
        asked = fold == number
        expected[asked] = own[:, 0] + values[asked] @ own[:, 1:].T
    return {**model.arrays(), "expected": expected}
