"""Columns as the reader wants them: picked whatever their case, cast to the kind that is asked."""

from collections.abc import Mapping

import ibis  # type: ignore[import-untyped, unused-ignore]
import ibis.expr.types as ir  # type: ignore[import-untyped, unused-ignore]

from etips.cohorts.engines.layouts import CODE, TEXT, TIME
from etips.cohorts.engines.tablefiles import PLAIN_TIME
from etips.errors import DataError

_CODE_LENGTH = 6


def typed(table: ibis.Table, columns: Mapping[str, str], *, where: str) -> ibis.Table:
    """Pick columns whatever their case, and cast those that have another type.

    Args:
        table: As the engine has it.
        columns: Names in lower case, and kinds.
        where: How refusals call the table.
    """
    by_name = {name.lower(): table[name] for name in table.columns}
    picked = {}
    for name, kind in columns.items():
        if by_name[name].type().is_nested():
            fix = "Check the file, or download it again."
            raise DataError(where, f"column {name} must hold one value a row", fix=fix)
        picked[name] = _cast(by_name[name], kind)
    return table.select(**picked)


def _cast(column: ir.Value, kind: str) -> ir.Value:
    """Cast a column that has another type.

    Codes that were stored as numbers get their leading zeros back. A text with something behind
    the time, such as PM, is spoilt first: engines would pass over it in silence.
    """
    if kind == CODE:
        if column.type().is_numeric():
            return column.cast("int64").cast("string").lpad(_CODE_LENGTH, "0")
        kind = TEXT
    if column.type() == ibis.dtype(kind):
        return column
    if kind == TIME and column.type().is_string():
        plain = column.isnull() | column.re_search(PLAIN_TIME)
        column = plain.ifelse(column, "not a time")
    return column.cast(kind)
