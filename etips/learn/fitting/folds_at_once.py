"""Work in pieces, such as folds, that are done at the same time; in turn or side by side."""

import math
import mmap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from etips.learn.training.crew import n_workers, run_all, working


class AtOnce:
    """Processes of a crew, as many as there are cores; what they write is the same in any order.

    Args:
        most: Processes, where somebody else knows how many there may be.
        held: Processes that memory holds, if that is a question.
    """

    def __init__(self, most: int | None = None, *, held: int | None = None) -> None:
        self._most, self._held = most, held

    def zeros(self, shape: tuple[int, ...], kind: DTypeLike) -> NDArray[Any]:
        """An array of zeros that processes share."""
        return shared_zeros(shape, kind) if self._size(2) > 1 else np.zeros(shape, kind)

    def do(self, work: Callable[[int], None], n_folds: int) -> None:
        """Do the work of every fold."""
        self.do_each([(work, n_folds)])

    def do_each(self, stages: Sequence[tuple[Callable[[int], None], int]]) -> None:
        """Do several works by the same processes, each when the one before is done.

        Args:
            stages: Works and the number of their pieces; all are there before any is done.
        """
        size = self._size(max(count for _, count in stages))
        if size == 1:
            for work, count in stages:
                for number in range(count):
                    work(number)
            return
        with working(size, lambda order: stages[int(order[0])][0](int(order[1]))) as crew:
            for stage, (_, count) in enumerate(stages):
                run_all(crew, [(stage, number) for number in range(count)])

    def _size(self, n_folds: int) -> int:
        size = n_workers(n_folds) if self._most is None else min(self._most, n_folds)
        return max(size if self._held is None else min(size, self._held), 1)


def shared_zeros(shape: tuple[int, ...], kind: DTypeLike) -> NDArray[Any]:
    """An array of zeros that is shared with processes forked from here on.

    It is as the system gives it: nothing is written, so that who writes first pays for the memory.
    """
    size = math.prod(shape) * np.dtype(kind).itemsize
    if not size:
        return np.zeros(shape, kind)
    return np.frombuffer(mmap.mmap(-1, size), kind).reshape(shape)
