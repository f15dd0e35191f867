"""Arrays stored as row numbers into a small table, so that repeated rows cost four bytes each."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from etips.data.decisions import Floats

Floats32 = NDArray[np.float32]
Rows = slice | NDArray[np.integer[Any]] | NDArray[np.bool_]


def read_only(values: NDArray[Any]) -> NDArray[Any]:
    """A view that cannot be written to."""
    view = values.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, eq=False, repr=False)
class Coded:
    """A float32 array of shape (n, d) whose rows are looked up when they are read.

    Indexing expands (`coded[10:20]` is a plain array); `take` selects rows and stays coded. MNIST
    sequences and the states of a simulated clinic repeat the same rows over and over: 10,000
    sequences of images are 1 MB of codes beside one table, not 600 MB of pixels.

    Args:
        table: The distinct rows, shape (n_codes, d), any real dtype.
        code: Which row of `table` stands at each place, shape (n,).
        unit: Every value is multiplied by it when read; bytes 0..255 with unit 1/255 read as 0..1.
    """

    table: NDArray[Any]
    code: NDArray[np.int32]
    unit: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", read_only(self.table))
        object.__setattr__(self, "code", read_only(self.code))

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the array this stands for."""
        return self.code.shape[0], self.table.shape[1]

    @property
    def ndim(self) -> int:
        """Always 2."""
        return 2

    @property
    def dtype(self) -> np.dtype[np.float32]:
        """What reading gives, whatever the table is stored as."""
        return np.dtype(np.float32)

    @property
    def nbytes(self) -> int:
        """Bytes really held."""
        return int(self.table.nbytes + self.code.nbytes)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Rows) -> Floats32:
        expanded = self.table.take(self.code[rows], axis=0).astype(np.float32, copy=False)
        if self.unit != 1.0:
            expanded *= np.float32(self.unit)
        return expanded

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("a coded array has to be expanded, which copies")
        return self[:] if dtype is None else self[:].astype(dtype)

    def __repr__(self) -> str:
        return f"Coded(shape={self.shape}, n_codes={self.table.shape[0]})"

    def take(self, rows: Rows) -> "Coded":
        """The same rows of the array, still coded and sharing the table."""
        return Coded(self.table, self.code[rows], self.unit)

    def without_unused(self) -> "Coded":
        """The same array with a table of the rows that occur in it alone."""
        occurs = np.zeros(len(self.table), bool)
        occurs[self.code] = True
        if occurs.all():
            return self
        number = (np.cumsum(occurs) - 1).astype(np.int32)
        return Coded(self.table[occurs], number[self.code], self.unit)

    def expanded_table(self) -> Floats32:
        """The table as it reads, shape (n_codes, d)."""
        return Coded(self.table, np.arange(len(self.table), dtype=np.int32), self.unit)[:]


Features = Floats32 | Coded
"""Sequential features: a plain float32 array, or a coded one that reads like it."""


@dataclass(frozen=True, eq=False, repr=False)
class Truth:
    """What only a simulated world knows: the expected loss of every action, and the logging policy.

    Args:
        code: Which row of the two tables holds at each step, shape (total_steps,).
        expected_loss: Expected loss of each action, shape (n_codes, n_actions).
        logging: Probability of each action under the logging policy, shape (n_codes, n_actions).
    """

    code: NDArray[np.int32]
    expected_loss: Floats
    logging: Floats

    def __post_init__(self) -> None:
        for name in ("code", "expected_loss", "logging"):
            object.__setattr__(self, name, read_only(getattr(self, name)))
