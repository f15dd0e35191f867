"""What the arrays of Trajectories must satisfy, each refused by place, rule and row."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from etips.data.coded import Coded, Features
from etips.data.decisions import Ints
from etips.data.schema import Schema
from etips.errors import DataError, require

_CHUNK = 65_536  # rows looked at together, so that a check costs little memory


def require_offsets(offsets: Ints) -> None:
    """Refuse offsets that do not cut the steps into stays of at least one."""
    sound = offsets.ndim == 1 and offsets.size >= 2 and np.issubdtype(offsets.dtype, np.integer)
    if not sound or offsets[0] != 0 or (np.diff(offsets) < 1).any():
        raise DataError("offsets", "must start at 0 and rise: every stay has at least one step")


def require_steps(step: NDArray[Any], offsets: Ints) -> None:
    """Refuse step labels that do not rise within a stay."""
    rises = np.ones(len(step), bool)
    rises[1:] = step[1:] > step[:-1]
    rises[offsets[:-1]] = True
    require("step", "must rise within a stay", rises)


def require_codes(where: str, code: NDArray[np.int32], n_codes: int) -> None:
    """Refuse row numbers that do not point into their table."""
    require(where, f"codes must be in 0..{n_codes - 1}", (code >= 0) & (code < n_codes))


def require_features(where: str, values: Features, names: Sequence[str], schema: Schema) -> None:
    """Refuse what is not finite, naming the column; NaN passes where the schema allows it."""
    if values.dtype != np.float32:
        raise DataError(where, "must be float32")
    if isinstance(values, Coded):
        require_codes(where, values.code, len(values.table))
        if not np.isfinite(values.unit):
            raise DataError(where, "must have a finite unit")
        if np.issubdtype(values.table.dtype, np.integer):
            return
        values = values.expanded_table()
    may_be_missing = np.array([schema.may_be_missing(name) for name in names], bool)
    for start in range(0, len(values), _CHUNK):
        part = values[start : start + _CHUNK]
        bad = ~np.isfinite(part)
        bad[:, may_be_missing] = np.isinf(part[:, may_be_missing])
        if bad.any():
            column = int(bad.any(axis=0).argmax())
            rows = start + np.flatnonzero(bad[:, column])
            place = f"{where}, feature {names[column]}"
            raise DataError(place, "must be finite", rows=rows, total=len(values))
