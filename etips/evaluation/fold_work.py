"""Work that is done fold by fold: in turn, unless a caller that knows of more cores runs it."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray


class FoldWork(Protocol):
    """Runs what every fold asks for; the order must not matter."""

    def zeros(self, shape: tuple[int, ...], kind: DTypeLike) -> NDArray[Any]:
        """An array that the work may write to, each fold to its own rows."""

    def do(self, work: Callable[[int], None], n_folds: int) -> None:
        """Do the work of every fold, given its number."""


class InTurn:
    """One fold after another."""

    def zeros(self, shape: tuple[int, ...], kind: DTypeLike) -> NDArray[Any]:
        """An array of zeros."""
        return np.zeros(shape, kind)

    def do(self, work: Callable[[int], None], n_folds: int) -> None:
        """Do the work of every fold."""
        for number in range(n_folds):
            work(number)


IN_TURN = InTurn()
"""The default."""
