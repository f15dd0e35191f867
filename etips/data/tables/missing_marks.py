"""Cells that somebody said mean "missing": texts in any column, numbers in columns of numbers."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from etips.data.tables.arrow_columns import is_categorical, is_text, spell_out


def without_marks(table: pa.Table, marks: Sequence[str]) -> pa.Table:
    """The same with empty cells in place of those marks.

    Args:
        table: The table, or a part of it.
        marks: Texts, spelt in small or capital letters and with blanks around them or not; those
            that are numbers are taken out of columns of numbers too. `age=999` is of column age.
    """
    for at, field in enumerate(table.schema):
        own = [mark for entry in marks if (mark := _mark_of(entry, field.name, table)) is not None]
        if not own:
            continue
        words = pa.array(sorted({mark.strip().casefold() for mark in own}), pa.string())
        numbers = pa.array(sorted({n for mark in own if (n := _number(mark)) is not None}))
        column = table.column(at)
        coded = is_categorical(field.type) and is_text(field.type.value_type)
        if coded:
            column = pc.cast(spell_out(column), pa.string())
        if is_text(column.type):
            plain = pc.utf8_lower(pc.utf8_trim_whitespace(pc.cast(column, pa.string())))
            there = pc.is_in(plain, words)
        elif len(numbers) and (types.is_integer(field.type) or types.is_floating(field.type)):
            there = pc.is_in(pc.cast(column, pa.float64(), safe=False), numbers)
        else:
            continue
        if pc.any(there).as_py():
            left = pc.if_else(there, pa.scalar(None, column.type), column)
            left = pc.dictionary_encode(left) if coded else left
            table = table.set_column(at, field.name, left)
    return table


def _mark_of(entry: str, column: str, table: pa.Table) -> str | None:
    """The mark that an entry names for a column; None if it is about another one."""
    name, equals, mark = entry.rpartition("=")
    if not equals or name.strip() not in table.column_names:
        return entry
    return mark if name.strip() == column else None


def _number(mark: str) -> float | None:
    try:
        return float(mark)
    except ValueError:
        return None
