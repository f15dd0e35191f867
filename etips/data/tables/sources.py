"""Anything that is a table (text, Excel, Parquet, Feather, a data frame, Arrow) as Arrow batches.

Errors of the readers quote the cell that they stumbled over. Here every one of them becomes a
refusal that names the place and the rule and quotes nothing, nor carries the error that does.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from etips.data.tables.arrow_columns import is_text
from etips.data.tables.arrow_tables import (
    ArrowStream,
    index_names,
    open_parquet,
    read_arrow,
    require_distinct,
    to_arrow,
    without_marks,
)
from etips.data.tables.delimited import PointColumns, read_delimited
from etips.data.tables.file_kinds import find_file
from etips.data.tables.number_cells import Decimal, matches
from etips.data.tables.spreadsheets import read_sheet
from etips.data.tables.table_spec import TableSpec
from etips.data.tables.text_cells import Habits, TextCells, TextForm, read_text
from etips.errors import DataError, Faults
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
                for at, name in enumerate(part.column_names):
                    if name in forms:
                        part = part.set_column(at, name, forms[name].apply(part.column(name)))
                yield part

        types = {name: form.type for name, form in forms.items()}
        return replace(self, columns={**self.columns, **types}, parts=parts)


TableLike = str | Path | ArrowStream | Source
"""What `read_table` takes: a path, a data frame of any library that speaks Arrow, or a table that
was opened before."""


def open_source(table: TableLike, spec: TableSpec | None = None) -> Source:
    """Open a table without reading more than it must.

    Args:
        table: A path (`workbook.xlsx#sheet` names a sheet), or a frame; one that was opened before
            is as it is.
        spec: Says how numbers, dates and missing values are written.
    """
    if isinstance(table, Source):
        return table
    own = spec or TableSpec()
    habits = Habits(own.decimal, own.dates, own.limits == "value", own.na)
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
    if file.content == "workbook":
        return settle(file.path.name, read_sheet(file), habits)
    table, points = read_delimited(file, habits.decimal)
    return settle(file.path.name, table, habits, points=points)


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


_FIRST_DAY, _LAST_DAY = 19_000_101, 21_001_231  # of whole numbers that may be dates
_SHOWN = 3  # columns named in a remark


_CLOCK = r"^([01]?\d|2[0-3]):[0-5]\d(:[0-5]\d)?$"


def settle(
    where: str, table: pa.Table, habits: Habits, *, points: PointColumns | None = None
) -> Source:
    """A table whose columns of text are read as what they are: of a text with fields, of a sheet.

    Args:
        where: The file, for refusals and remarks.
        table: The table.
        habits: What the user said about it.
        points: What is known of its numbers with a point.
    """
    table = without_marks(table, habits.na)
    cells = {
        name: TextCells.of(table.column(name))
        for name, kind in zip(table.column_names, table.schema.types, strict=True)
        if is_text(kind)
    }
    marks: set[Decimal] = {"."} if points is not None and points.seen else set()
    for own in cells.values():
        if (own.number | own.marker).all():
            marks |= {"."} if own.numbers.point.any() else set()
            marks |= {","} if own.numbers.comma.any() else set()
    decimal = habits.decimal or (marks.pop() if len(marks) == 1 else None)
    usual: Decimal | None = "." if points is not None and points.usual else None
    known = replace(habits, decimal=decimal, usual=usual)
    forms: dict[str, TextForm] = {}
    faults: dict[str, DataError] = {}
    plain: set[str] = set()
    for name, own in cells.items():
        forms[name], fault = read_text(where, name, own, known)
        if fault is not None:
            faults[name] = fault
        elif forms[name].kind == "text":
            plain.add(name)
        if forms[name].zeros or forms[name].unit:
            forms[name] = TextForm()  # a number all the same, if somebody wants one
    _remark(where, forms)
    columns = {
        name: forms[name].apply_to(cells[name]) if name in cells else table.column(at)
        for at, name in enumerate(table.column_names)
    }
    clocks = set()
    for name in plain:
        clock = matches(cells[name].texts, _CLOCK)
        if clock.any() and (clock | cells[name].empty).all():
            clocks.add(name)
    tidy = _tidy(where, pa.table(columns), clocks)
    source = _from_arrow(where, tidy, known)
    return replace(source, faults=faults, plain=frozenset(plain - clocks))


def _tidy(where: str, table: pa.Table, clocks: Collection[str]) -> pa.Table:
    """Times of day as such, empty rows at the end left out; dates without marks are told."""
    for at, own in enumerate(table.schema):
        column = table.column(at)
        if own.name in clocks:
            seconds = [_seconds(text) for text in column.to_pylist()]
            table = table.set_column(at, own.name, pa.array(seconds, pa.time32("s")))
        elif pa.types.is_integer(own.type) and _are_dates(column):
            place = f"{where}: column {own.name}"
            note(f"{place} looks like dates; they are read if written 2024-12-31")
    if all(column.null_count for column in table.columns):
        valid = [np.flatnonzero(pc.is_valid(column).to_numpy()) for column in table.columns]
        last = max((int(rows[-1]) for rows in valid if rows.size), default=-1)
        if last + 1 < table.num_rows:
            note(f"{where}: {table.num_rows - last - 1:,} empty rows at its end were left out")
            table = table.slice(0, last + 1)
    return table


def _seconds(text: str | None) -> int | None:
    if text is None:
        return None
    hour, minute, second = (int(part) for part in (*text.split(":"), "0")[:3])
    return hour * 3600 + minute * 60 + second


def _are_dates(column: pa.ChunkedArray) -> bool:
    """Whether whole numbers are all dates written 20241231, or with a time, 202412312359."""
    least, most = (bound.as_py() for bound in pc.min_max(column).values())
    if least is None or least < _FIRST_DAY:
        return False
    behind = 10 ** (len(str(least)) - len(str(_FIRST_DAY)))  # digits of a time of day
    low, high = least // behind, most // behind
    if behind not in (1, 10**4, 10**6) or low < _FIRST_DAY or high > _LAST_DAY:
        return False
    values = column.drop_null().to_numpy() // behind
    month, day = values // 100 % 100, values % 100
    return bool(((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all())


def _remark(where: str, forms: dict[str, TextForm]) -> None:
    """Say how cells were read that could be meant otherwise."""
    commas = [name for name, form in forms.items() if form.kind == "number" and form.decimal == ","]
    commas = [name for name in commas if not (forms[name].whole or forms[name].grouped)]
    if commas:
        note(f"{where}: decimal commas in {_columns(commas)}")
    for order, words in (("dmy", "day, month, year"), ("mdy", "month, day, year")):
        dates = [
            name
            for name, form in forms.items()
            if form.kind == "date" and form.year_last and form.order == order
        ]
        if dates:
            note(f"{where}: dates of {_columns(dates)} were read as {words}")
    grouped = [name for name, form in forms.items() if form.grouped]
    if grouped:
        note(f"{where}: separators of thousands in {_columns(grouped)}")
    limits = [name for name, form in forms.items() if form.limits]
    if limits:
        note(f"{where}: limits such as < or > in {_columns(limits)} were read as their number")
    marked = [name for name, form in forms.items() if form.missing]
    if marked:
        marks = sorted({mark for name in marked for mark in forms[name].missing})
        shown = ", ".join(f'"{mark}"' for mark in marks)
        verb = "was" if len(marks) == 1 else "were"
        note(f"{where}: {shown} {verb} read as missing in {_columns(marked)}")


def _columns(names: list[str]) -> str:
    if len(names) <= _SHOWN:
        return ("column " if len(names) == 1 else "columns ") + ", ".join(names)
    return f"{len(names)} columns"
