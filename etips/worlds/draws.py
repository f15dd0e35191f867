"""Random draws for many rows of a probability table at once, and what a world may be asked."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from etips.data.decisions import Floats, Ints
from etips.errors import SettingError, require


def generator(seed: int, stream: int = 0) -> np.random.Generator:
    """A generator of its own for each use (`stream`) of one seed."""
    if seed < 0:
        raise SettingError("seed", "must not be negative")
    return np.random.default_rng((seed, stream))


@dataclass(frozen=True, eq=False)
class Chances:
    """A table of probabilities laid out for draws by inverse cdf.

    All rows share one ascending array, row r between r and r + 1, so that one binary search serves
    every draw whatever its row. Zeros are not stored: they cannot be drawn, not even by rounding.
    """

    cumulative: Floats
    value: NDArray[np.int32]
    first: Ints
    last: Ints

    @classmethod
    def of(cls, table: Floats) -> Self:
        """Lay out `table`, shape (n_rows, n_values).

        Rows are scaled to sum to 1; a row of zeros must not be drawn from.
        """
        row, value = np.nonzero(table > 0)
        weight = table[row, value]
        mass = np.bincount(row, weight, minlength=len(table))
        before = np.cumsum(mass) - mass
        cumulative = row + (np.cumsum(weight) - before[row]) / mass[row]
        stop = np.searchsorted(row, np.arange(len(table)), side="right")
        first = np.concatenate([[0], stop[:-1]])
        return cls(cumulative, value.astype(np.int32), first, stop - 1)

    def draw(self, rows: Ints, rng: np.random.Generator) -> Ints:
        """Draw one value for each entry of `rows`, shape (n,)."""
        return self.at(rows, rng.random(len(rows)))

    def at(self, rows: Ints, uniform: Floats) -> Ints:
        """The values that uniform numbers fall on, one for each entry of `rows`, shape (n,)."""
        place = np.searchsorted(self.cumulative, rows + uniform, side="right")
        # Row r's last edge may round to either side of r + 1: keep every draw in its own row.
        kept = np.clip(place, self.first[rows], self.last[rows])
        return self.value[kept].astype(np.int64)


def require_policy(table: Floats) -> None:
    """Refuse rows that are no probabilities."""
    sound = (table >= 0).all(axis=1) & (np.abs(table.sum(axis=1) - 1) < 1e-6)
    require("policy", "rows must be probabilities that sum to 1", sound)


def require_settings(**limits: tuple[bool, str]) -> None:
    """Refuse the first setting whose rule does not hold."""
    for name, (holds, rule) in limits.items():
        if not holds:
            raise SettingError(name, rule)
