"""Histories as rows of one width, for classifiers that know no time."""

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from etips.data.decisions import Floats, Ints
from etips.data.trajectories import Trajectories

Summary = Callable[[Trajectories], NDArray[np.float32]]
"""Turns stays into one row a decision."""


class Classifier(Protocol):
    """A classifier of scikit-learn's kind."""

    def fit(self, X: NDArray[np.float32], y: Ints) -> object:  # noqa: N803  # their spelling
        """Learn."""

    def predict_proba(self, X: NDArray[np.float32]) -> Floats:  # noqa: N803
        """Probability of each class in `classes_`, shape (n, n_classes)."""


def last_and_mean(data: Trajectories) -> NDArray[np.float32]:
    """Summary of each history: its last step, the mean of its steps, their number, static features.

    Shape (n_decisions, 2 d + 1 + s).
    """
    stay, step = data.decisions()
    last = data.seen_rows
    features = data.sequence[:]
    sums = np.cumsum(features, axis=0, dtype=np.float64)
    start = data.offsets[stay]
    before = np.where((start > 0)[:, None], sums[np.maximum(start - 1, 0)], 0.0)
    count = (step + 1 - data.lag)[:, None]
    mean = (sums[last] - before) / count
    parts = (features[last], mean, count, data.static[stay])
    return np.concatenate(parts, axis=1).astype(np.float32)
