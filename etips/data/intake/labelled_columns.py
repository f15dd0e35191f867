"""Columns whose cells are names rather than amounts: treatments, and outcomes in words or codes."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from etips.data.decisions import Floats, Ints
from etips.data.schema import MOST_ACTIONS
from etips.data.tables.arrow_columns import (
    encode,
    is_categorical,
    is_number,
    is_text,
    plain_type,
)
from etips.errors import DataError, require

FALSE, TRUE = "false", "true"
"""Labels of a column of booleans."""

AMOUNT = 'If it is an amount, name it in --dose (dose="...") instead, which makes classes of it.'
"""What to do about a treatment of many numbers."""

_LONGEST = 100  # characters of a label; it names an action wherever one is shown


@dataclass(frozen=True, eq=False)
class LabelledColumn:
    """A column of labels, cell by cell.

    Args:
        where: The place, for refusals.
        name: Of the column.
        labels: What occurs in it, in order: numbers by size, else by alphabet.
        code: Label of each row, -1 where there is none, shape (n,).
        numbers: The labels as numbers; None if they are not.
        boolean: Whether they are true and false.
    """

    where: str
    name: str
    labels: tuple[str, ...]
    code: Ints
    numbers: Floats | None
    boolean: bool = False

    @property
    def is_range(self) -> bool:
        """Whether the labels are 0..K-1 without a hole."""
        own = self.numbers
        return own is not None and own.tolist() == list(range(own.size))

    @property
    def is_whole(self) -> bool:
        """Whether the labels are whole numbers."""
        return self.numbers is not None and bool((self.numbers == np.round(self.numbers)).all())

    @property
    def counts(self) -> Ints:
        """How many rows have each label."""
        return np.bincount(self.code[self.code >= 0], minlength=len(self.labels))


def label_column(where: str, name: str, column: pa.ChunkedArray) -> LabelledColumn:
    """Find the labels of a column; blanks around text do not count, and blank text is missing."""
    kind = plain_type(column.type)
    if not (is_number(kind) or is_text(kind)):
        raise DataError(where, "must be text, numbers, or true and false", fix="Times are none.")
    cells, code = encode(column)
    if types.is_boolean(kind):  # both are treatments, though only one may occur
        flags = np.array([*(int(cell) for cell in cells.to_pylist()), -1])[code]
        return LabelledColumn(where, name, (FALSE, TRUE), flags, np.array([0.0, 1.0]), boolean=True)
    if len(cells) > MOST_ACTIONS:
        rule = f"must hold at most {MOST_ACTIONS:,} different treatments"
        raise DataError(where, rule, fix=AMOUNT)
    text = is_text(kind)
    try:
        cells = pc.cast(cells, pa.string()) if text else cells
        cells = pc.cast(cells, pa.float64()) if not (text or types.is_integer(kind)) else cells
    except pa.ArrowException:
        raise DataError(where, "must be UTF-8 text") from None
    digits = 6 if types.is_float32(kind) or types.is_float16(kind) else 12
    values = cells.to_pylist()
    texts = [_label(cell, digits=digits) for cell in values]
    labels = _in_order({text for text in texts if text}, numeric=not text)
    if is_categorical(column.type) and column.type.ordered:  # low, mid, high: as it was declared
        declared = [_label(level, digits=12) for level in column.chunk(0).dictionary.to_pylist()]
        labels = tuple(sorted(labels, key=declared.index)) if set(labels) <= {*declared} else labels
    place = {label: number for number, label in enumerate(labels)}
    if not text:
        size = np.abs(np.array([*(np.nan if cell is None else cell for cell in values), 0.0]))
        require(where, "must be finite", ~np.isinf(size)[code])
        require(where, "must be below 2**53", ~(size >= 2**53)[code])
    brief = np.array([*(len(text) <= _LONGEST for text in texts), True])
    require(where, f"must be text of at most {_LONGEST} characters", brief[code])
    numbers = None if text else np.array([float(label) for label in labels])
    own = np.array([*(place.get(text, -1) for text in texts), -1], np.int64)[code]
    return LabelledColumn(where, name, labels, own, numbers)


def _label(cell: object, *, digits: int) -> str:
    """A cell as a label; empty where it is missing."""
    if isinstance(cell, str):
        return " ".join("".join(c if c.isprintable() else " " for c in cell).split())
    if isinstance(cell, int):
        return str(cell)
    if isinstance(cell, float) and np.isfinite(cell):
        return str(int(cell)) if cell == round(cell) else f"{cell:.{digits}g}"
    return ""


def _in_order(labels: set[str], *, numeric: bool) -> tuple[str, ...]:
    """Sorted, by size where every label spells a number."""
    try:
        sizes = {label: float(label) for label in labels}
    except ValueError:
        sizes = {}
    if numeric or (sizes and all(np.isfinite(size) for size in sizes.values())):
        return tuple(sorted(labels, key=lambda label: (sizes[label], label)))
    return tuple(sorted(labels))
