"""Cells of a treatment's column as labels: text, categories, yes or no, codes."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from etips.data.decisions import NO_ACTION, Floats, Ints
from etips.data.schema import MOST_ACTIONS
from etips.data.tables.arrow_columns import is_categorical, is_number, is_text, spell_out
from etips.errors import DataError, require

FALSE, TRUE = "false", "true"
"""Labels of a column of booleans."""

LONGEST = 100
"""Characters of a label; it names an action wherever one is shown."""

AMOUNT = 'If it is an amount, name it in --dose (dose="...") instead, which makes classes of it.'
"""What to do about a treatment of many numbers."""


@dataclass(frozen=True, eq=False)
class LabelledColumn:
    """One column of a treatment, cell by cell.

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

    def called(self, label: str, *, alone: bool) -> str:
        """What a label is called: a code among other columns says of what it is one."""
        if self.boolean:
            return self.name if label == TRUE else f"no {self.name}"
        return label if alone or self.numbers is None else f"{self.name} {label}"


def label_column(where: str, name: str, column: pa.ChunkedArray) -> LabelledColumn:
    """Find the labels of a column; blanks around text do not count, and blank text is missing."""
    kind = column.type.value_type if is_categorical(column.type) else column.type
    if not (is_number(kind) or is_text(kind)):
        raise DataError(where, "must be text, numbers, or true and false", fix="Times are none.")
    if types.is_boolean(kind):  # both are treatments, though only one may occur
        flags = pc.fill_null(pc.cast(spell_out(column), pa.int64()), NO_ACTION).to_numpy()
        return LabelledColumn(where, name, (FALSE, TRUE), flags, np.array([0.0, 1.0]), boolean=True)
    encoded = _encode(where, column)
    cells = encoded.dictionary.to_pylist()
    single = bool(types.is_float32(kind) or types.is_float16(kind))
    texts = [_label(cell, digits=6 if single else 12) for cell in cells]
    numbers = None if is_text(kind) else [_number(cell) for cell in cells]
    labels = _in_order({text for text in texts if text}, numbers is not None)
    if is_categorical(column.type) and column.type.ordered:  # low, mid, high: as it was declared
        declared = [_label(level, digits=12) for level in column.chunk(0).dictionary.to_pylist()]
        labels = tuple(sorted(labels, key=declared.index)) if set(labels) <= {*declared} else labels
    place = {label: number for number, label in enumerate(labels)}
    codes = np.array([place.get(text, NO_ACTION) for text in texts] + [NO_ACTION], np.int64)
    rows = pc.fill_null(encoded.indices, len(cells)).to_numpy(zero_copy_only=False)
    if numbers is not None:
        size = np.abs([*numbers, 0.0])
        require(where, "must be finite", ~np.isinf(size)[rows])
        require(where, "must be below 2**53", ~(size >= 2**53)[rows])
    brief = np.array([*(len(text) <= LONGEST for text in texts), True])
    require(where, f"must be text of at most {LONGEST} characters", brief[rows])
    values = None if numbers is None else np.array([float(label) for label in labels])
    return LabelledColumn(where, name, labels, codes[rows], values)


def _encode(where: str, column: pa.ChunkedArray) -> pa.DictionaryArray:
    """The distinct cells of a column, and which of them each row has."""
    plain = spell_out(column)
    if is_text(plain.type):
        try:
            plain = pc.cast(plain, pa.string())
        except pa.ArrowException:
            raise DataError(where, "must be UTF-8 text") from None
    elif types.is_null(plain.type) or types.is_decimal(plain.type) or types.is_float16(plain.type):
        plain = pc.cast(plain, pa.float64())
    encoded = pc.dictionary_encode(plain.combine_chunks())
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    if len(encoded.dictionary) > MOST_ACTIONS:
        raise DataError(
            where, f"must hold at most {MOST_ACTIONS:,} different treatments", fix=AMOUNT
        )
    return encoded


def _label(cell: object, *, digits: int) -> str:
    """A cell as a label; empty where it is missing."""
    if isinstance(cell, str):
        return " ".join("".join(c if c.isprintable() else " " for c in cell).split())
    if isinstance(cell, bool | int):
        return str(int(cell))
    if isinstance(cell, float) and np.isfinite(cell):
        return str(int(cell)) if cell == round(cell) else f"{cell:.{digits}g}"
    return ""


def _number(cell: object) -> float:
    return float(cell) if isinstance(cell, bool | int | float) else float("nan")


def _in_order(labels: set[str], numeric: bool) -> tuple[str, ...]:
    """Sorted, by size where every label spells a number."""
    try:
        keyed = {label: float(label) for label in labels}
    except ValueError:
        keyed = {}
    if numeric or (keyed and all(np.isfinite(value) for value in keyed.values())):
        return tuple(sorted(labels, key=lambda label: (keyed[label], label)))
    return tuple(sorted(labels))
