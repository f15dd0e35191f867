"""Work that is done fold by fold, the folds at the same time; see `evaluation.fold_work`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray

from etips.evaluation.fold_work import InTurn
from etips.learn.training.crew import n_workers, run_all, shared, working


class AtOnce(InTurn):
    """Processes of a crew, as many as there are cores; what they write is the same in any order.

    Args:
        most: Processes, where somebody else knows how many there may be.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most

    def zeros(self, shape: tuple[int, ...], kind: DTypeLike) -> NDArray[Any]:
        """An array of zeros that processes share."""
        array = np.zeros(shape, kind)
        return shared(torch.from_numpy(array)).numpy() if self._size(2) > 1 else array

    def do(self, work: Callable[[int], None], n_folds: int) -> None:
        """Do the work of every fold."""
        size = self._size(n_folds)
        if size == 1:
            super().do(work, n_folds)
            return
        with working(size, lambda order: work(int(order[0]))) as crew:
            run_all(crew, [(number,) for number in range(n_folds)])

    def _size(self, n_folds: int) -> int:
        return max(n_workers(n_folds) if self._most is None else min(self._most, n_folds), 1)
