"""Anything that is a table (text, Excel, Parquet, Feather, a data frame, Arrow) as Arrow batches.

Errors of the readers quote the cell that they stumbled over. Here every one of them becomes a
refusal that names the place and the rule and quotes nothing, nor carries the error that does.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pyarrow as pa

from etips.data.tables.arrow_columns import is_text
from etips.data.tables.columnar import open_parquet, read_arrow
from etips.data.tables.data_frames import ArrowStream, index_names, require_distinct, to_arrow
from etips.data.tables.date_cells import DATE_ORDERS
from etips.data.tables.delimited import read_delimited
from etips.data.tables.file_kinds import find_file
from etips.data.tables.missing_marks import without_marks
from etips.data.tables.number_cells import Decimal
from etips.data.tables.spreadsheets import read_sheet
from etips.data.tables.text_cells import Habits, TextCells, TextForm, read_text
from etips.errors import DataError, Faults, SettingError
from etips.notes import note

Parts = Callable[[Sequence[str]], Iterator[pa.Table]]
"""Given column names, a table in parts."""


@dataclass(frozen=True)
class Source:
    """A table that can be read in parts.

    Args:
        name: How refusals call it.
        columns: Arrow type of each column.
        n_rows: Number of rows.
        parts: Given column names, the table in parts small enough to hold beside the result.
        faults: What is wrong with a column of text, if it must be numbers or dates.
        habits: What the user said of how numbers and dates are written.
        plain: Columns of text that are known to hold neither numbers nor dates.
        index: Names of the index of a pandas frame, which is no column.
    """

    name: str
    columns: dict[str, pa.DataType]
    n_rows: int
    parts: Parts
    faults: Mapping[str, DataError] = field(default_factory=dict)
    habits: Habits = field(default_factory=Habits)
    plain: Collection[str] = ()
    index: tuple[str, ...] = ()

    def form(self, name: str) -> tuple[TextForm, DataError | None]:
        """How to read a column of text as numbers or dates, and why it is neither.

        Both are nothing (`text`, None) for a column in which no cell is a number or a date. Columns
        of a CSV or a workbook that can be read as one of them have been; a frame's are left as
        they are, since text that looks like a number may be an identifier.
        """
        known = name in self.faults or name in self.plain
        if known or not is_text(self.columns[name]):
            return TextForm(), self.faults.get(name)
        try:
            cells = TextCells.of(whole_column(self, name))
        except pa.ArrowException:
            place = f"{self.name}, column {name}"
            return TextForm(), DataError(place, "must be UTF-8 text", fix="Save it as UTF-8.")
        return read_text(self.name, name, cells, self.habits)

    def settled(self, names: Sequence[str]) -> "Source":
        """The same with columns of text read as the numbers or dates they are.

        All columns of `names` that mix them with text, or could be meant in two ways, are refused.
        """
        forms: dict[str, TextForm] = {}
        faults = Faults()
        for name in names:
            form, fault = self.form(name)
            if fault is not None:
                faults.note(fault)
            elif form.kind != "text":
                forms[name] = form
        faults.raise_any()
        if not forms:
            return self

        def parts(wanted: Sequence[str]) -> Iterator[pa.Table]:
            for part in self.parts(wanted):
                yield _applied(part, forms)

        types = {name: form.type for name, form in forms.items()}
        return replace(self, columns={**self.columns, **types}, parts=parts)


TableLike = str | Path | ArrowStream | Source
"""What `read_table` takes: a path, a data frame of any library that speaks Arrow, or a table that
was opened before."""


def _applied(part: pa.Table, forms: Mapping[str, TextForm]) -> pa.Table:
    for at, name in enumerate(part.column_names):
        if name in forms:
            part = part.set_column(at, name, forms[name].apply(part.column(name)))
    return part


def open_source(
    table: TableLike,
    *,
    decimal: str | None = None,
    dates: str | None = None,
    limits: str | None = None,
    na: Sequence[str] = (),
) -> Source:
    """Open a table without reading more than it must.

    Args:
        table: A path (`workbook.xlsx#sheet` names a sheet), or a frame; one that was opened before
            is as it is.
        decimal: "," or ".", where columns could be meant in two ways.
        dates: "dmy" or "mdy", what stands first in dates that could be meant in two ways.
        limits: "value": cells such as <5 and 85+ are read as their number; refused otherwise.
        na: Cells that mean "missing".
    """
    if isinstance(table, Source):
        return table
    habits = _habits(decimal, dates, limits, na)
    if not isinstance(table, str | Path):
        source = _from_arrow("table", without_marks(to_arrow(table), habits.na), habits)
        if source.index:
            named = ", ".join(source.index)
            note(f"the index of the frame ({named}) is not read; frame.reset_index() makes columns")
        return source
    file = find_file(table)
    if file.content == "parquet":
        opened = open_parquet(file)
        columns = _distinct(file.path.name, opened.schema)
        parts = _unmarked(opened.parts, habits.na)
        return Source(file.path.name, columns, opened.n_rows, parts, {}, habits)
    if file.content == "arrow":
        return _from_arrow(file.path.name, without_marks(read_arrow(file), habits.na), habits)
    read = read_sheet if file.content == "workbook" else read_delimited
    settled = read(file, habits)
    source = _from_arrow(file.path.name, settled.table, settled.habits)
    return replace(source, faults=settled.faults, plain=settled.plain)


def _unmarked(parts: Parts, na: Sequence[str]) -> Parts:
    """The same parts, empty where they hold a mark of a missing value."""
    if not na:
        return parts

    def emptied(wanted: Sequence[str]) -> Iterator[pa.Table]:
        for part in parts(wanted):
            yield without_marks(part, na)

    return emptied


def whole_column(source: Source, name: str) -> pa.ChunkedArray:
    """All of one column, in the order of the table."""
    return pa.concat_tables(list(source.parts([name]))).column(name)


def _habits(
    decimal: str | None, dates: str | None, limits: str | None, na: Sequence[str]
) -> Habits:
    if decimal not in (None, ",", "."):
        raise SettingError("decimal", 'must be "," or "."')
    if dates is not None and dates not in DATE_ORDERS:
        raise SettingError("dates", 'must be "dmy" or "mdy"')
    if limits not in (None, "refuse", "value"):
        raise SettingError("limits", 'must be "refuse" or "value"')
    return Habits(cast(Decimal | None, decimal), dates, limits == "value", tuple(na))


def _from_arrow(name: str, table: pa.Table, habits: Habits) -> Source:
    columns = _distinct(name, table.schema)

    def parts(wanted: Sequence[str]) -> Iterator[pa.Table]:
        return iter([table.select(list(wanted))])

    index = index_names(table.schema)
    return Source(name, columns, table.num_rows, parts, {}, habits, index=index)


def _distinct(name: str, schema: pa.Schema) -> dict[str, pa.DataType]:
    try:
        names = schema.names
    except UnicodeDecodeError:
        raise DataError(name, "column names must be UTF-8 text") from None
    require_distinct(name, names)
    return dict(zip(names, schema.types, strict=True))
