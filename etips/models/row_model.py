"""Models of single rows as arrays: linear, by squares or waves, or by the nearest of some centres.

What methods without memory keep: a penalised regression, a support vector machine, a linear policy,
a table of states. Nothing here holds the row of a patient: centres are means of many. NumPy alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from etips.data.decisions import Floats, Ints
from etips.data.history_rows import last_step, summarise_history, summary_columns
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories

Reads = Literal["summary", "last", "history"]
"""What a row is made of: the summary of the history, the last visible step alone, or the summary
and the lowest, the highest and the first value so far of every feature."""

Form = Literal["linear", "squares", "waves", "nearest"]
"""What weights stand on: the columns, squares of directions (sums of products of two columns),
cosines of random directions (a Gaussian kernel), or which centre is the nearest."""

LIMIT = 10.0
"""Standardised values are held within this many standard deviations."""

BLOCK = 8192
"""Rows that are asked at once."""


@dataclass(frozen=True, eq=False)
class RowModel:
    """J members that say K numbers of a row; rows are standardised first.

    Args:
        reads: What rows are made of.
        form: What weights stand on.
        mean: Of each column, shape (d,); a missing value is taken for it.
        scale: What each column is divided by.
        basis: Directions or centres in standardised rows, shape (m, d); (0, d) for a linear form.
        phase: Of each direction, shape (m,).
        weight: Shape (J, d or m, K).
        base: What is said of anybody, shape (J, K).
    """

    reads: Reads
    form: Form
    mean: Floats
    scale: Floats
    basis: Floats
    phase: Floats
    weight: Floats
    base: Floats

    @property
    def n_members(self) -> int:
        """Members that answer."""
        return len(self.base)

    @property
    def shape(self) -> dict[str, object]:
        """What a manifest says of it."""
        return {"rows": self.reads, "form": self.form, "n_members": self.n_members}

    def outputs(self, rows: NDArray[Any]) -> Floats:
        """What every member says of rows (n, d), NaN where missing; shape (J, n, K)."""
        said = np.empty((self.n_members, len(rows), self.base.shape[1]))
        for start in range(0, len(rows), BLOCK):
            part = standardise(rows[start : start + BLOCK], self.mean, self.scale)
            said[:, start : start + BLOCK] = self._say(part)
        return said

    def _say(self, rows: Floats) -> Floats:
        if self.form == "nearest":
            return self.weight[:, nearest(rows, self.basis)] + self.base[:, None]
        if self.form == "waves":
            rows = lift(rows, self.basis, self.phase)
        elif self.form == "squares":
            rows = (rows @ self.basis.T + self.phase) ** 2
        return rows @ self.weight + self.base[:, None]

    def select(self, members: Sequence[int]) -> Self:
        """Some of the members, in the order given."""
        return replace(self, weight=self.weight[list(members)], base=self.base[list(members)])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a file holds: copies, for two models of a policy may share how rows are made."""
        return {name: np.array(getattr(self, name), np.float64, order="C") for name in _ARRAYS}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], *, reads: object, form: object, n_outputs: int
    ) -> Self:
        """What a file held; a ValueError unless every part fits the others."""
        if set(arrays) != set(_ARRAYS) or reads not in get_args(Reads):
            raise ValueError("a model of rows has other parts")
        if form not in get_args(Form) or any(a.dtype != np.float64 for a in arrays.values()):
            raise ValueError("a model of rows has other parts")
        made = cls(reads=reads, form=form, **arrays)  # type: ignore[arg-type]
        d, m = made.mean.size, made.phase.size
        members, width = len(made.base), d if form == "linear" else m
        shapes = {"mean": (d,), "scale": (d,), "basis": (m, d), "phase": (m,)}
        shapes |= {"weight": (members, width, n_outputs), "base": (members, n_outputs)}
        sound = all(getattr(made, name).shape == shapes[name] for name in _ARRAYS)
        sound = sound and members > 0 and all(np.isfinite(a).all() for a in arrays.values())
        if not sound or not (made.scale > 0).all() or (form == "nearest" and not m):
            raise ValueError("the parts of a model of rows do not fit together")
        return made


_ARRAYS = tuple(own.name for own in fields(RowModel) if own.name not in ("reads", "form"))


def rows_of(data: Trajectories, reads: Reads, like: Schema | None = None) -> NDArray[np.float32]:
    """The rows that a model reads of stays, one a decision; `like` is the schema it was fitted on.

    That need not be theirs in every word: a table knows what may be missing, a simulation does not.
    """
    if reads == "last":
        return last_step(data)
    return summarise_history(data, like, extremes=reads == "history")


def row_width(schema: Schema, reads: Reads) -> int:
    """How many columns those rows have."""
    if reads == "last":
        return len(schema.sequence) + len(schema.static)
    return len(summary_columns(schema, extremes=reads == "history"))


def standardise(rows: NDArray[Any], mean: Floats, scale: Floats) -> Floats:
    """Columns in standard deviations, 0 where a value is missing."""
    values = np.clip((rows - mean) / scale, -LIMIT, LIMIT)
    return np.where(np.isnan(values), 0.0, values)


def spread_of(rows: NDArray[Any]) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each column, over the values known; 1 where none varies."""
    known = ~np.isnan(rows)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, rows, 0).sum(axis=0, dtype=np.float64) / count
    squares = np.zeros_like(mean)
    for place in range(rows.shape[1]):
        own = rows[known[:, place], place] - mean[place]
        squares[place] = float(own @ own)
    scale = np.sqrt(squares / count)
    scale[scale <= 1e-6 * np.maximum(np.abs(mean), 1)] = 1.0  # float32 noise is no variation
    return mean, scale


def lift(rows: Floats, directions: Floats, phase: Floats) -> Floats:
    """Cosines whose products are near a Gaussian kernel (Rahimi and Recht 2007), shape (n, m)."""
    waves: Floats = np.sqrt(2 / max(len(phase), 1)) * np.cos(rows @ directions.T + phase)
    return waves


def nearest(rows: Floats, centres: Floats) -> Ints:
    """The nearest centre of each row, the first among equals, shape (n,)."""
    size = (centres**2).sum(axis=1)
    return np.asarray((size - 2 * (rows @ centres.T)).argmin(axis=1))
