"""Anything that is a table (text, Excel, Parquet, Feather, a data frame) as Arrow batches."""

import contextlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from etips.data.tables.arrow_columns import encode, is_categorical, is_text, plain_type
from etips.data.tables.delimited import read_delimited
from etips.data.tables.table_files import (
    UNREADABLE,
    Parts,
    find_file,
    open_parquet,
    read_arrow,
    read_sheet,
)
from etips.data.tables.table_spec import TableSpec
from etips.data.tables.text_cells import (
    Decimal,
    Habits,
    TextCells,
    TextForm,
    read_text,
)
from etips.errors import DataError, Faults
from etips.notes import note

_NAMES = "Give every column a name in the first line; of two lines of names keep one."
_FIRST_DAY, _LAST_DAY = 19_000_101, 21_001_231  # of whole numbers that may be dates
_SHOWN = 3  # columns named in a remark
_CLOCK = r"^([01]?\d|2[0-3]):[0-5]\d(:[0-5]\d)?$"


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

        kinds = {name: form.type for name, form in forms.items()}
        return replace(self, columns={**self.columns, **kinds}, parts=parts)


@runtime_checkable
class ArrowStream(Protocol):
    """A pandas, polars or Arrow table: anything that offers the Arrow stream interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


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
        frame, index = to_arrow(table)
        if index:
            named = ", ".join(index)
            note(f"the index of the frame ({named}) is not read; frame.reset_index() makes columns")
        return replace(_from_arrow("table", without_marks(frame, own.na), habits), index=index)
    file = find_file(table)
    name = file.path.name
    if file.content == "parquet":
        schema, n_rows, raw = open_parquet(file.path)

        def parts(wanted: Sequence[str]) -> Iterator[pa.Table]:
            for part in raw(wanted):
                yield without_marks(part, own.na)

        columns = _distinct(name, schema)
        return Source(name, columns, n_rows, parts if own.na else raw, habits=habits)
    if file.content == "arrow":
        return _from_arrow(name, without_marks(read_arrow(file.path), own.na), habits)
    if file.content == "workbook":
        return _settled(name, name_columns(name, read_sheet(file)), habits, points=False)
    text, points = read_delimited(file, points=habits.decimal == ".")
    return _settled(name, name_columns(name, text), habits, points=points)


def whole_column(source: Source, name: str) -> pa.ChunkedArray:
    """All of one column, in the order of the table."""
    return pa.concat_tables(list(source.parts([name]))).column(name)


def _from_arrow(name: str, table: pa.Table, habits: Habits) -> Source:
    columns = _distinct(name, table.schema)

    def parts(wanted: Sequence[str]) -> Iterator[pa.Table]:
        return iter([table.select(list(wanted))])

    return Source(name, columns, table.num_rows, parts, habits=habits)


def to_arrow(table: ArrowStream) -> tuple[pa.Table, tuple[str, ...]]:
    """Any frame as an Arrow table, and the names of its index, which is no column."""
    if not isinstance(table, ArrowStream):
        raise DataError("table", "must be a path or a pandas, polars or Arrow table")
    if isinstance(table, pa.Table):
        return table, ()
    if type(table).__module__.startswith("pandas"):
        return _pandas_to_arrow(table)
    # The Arrow interface ends a name at NUL, and polars ends the process over one.
    if any(isinstance(name, str) and "\0" in name for name in getattr(table, "columns", ())):
        raise DataError("table", "column names must not hold NUL characters")
    try:
        return pa.table(table), ()
    except UNREADABLE:
        raise DataError("table", "cannot be read as an Arrow table") from None


def _pandas_to_arrow(frame: Any) -> tuple[pa.Table, tuple[str, ...]]:  # noqa: ANN401  # foreign
    if not hasattr(frame, "columns"):
        raise DataError("table", "must be a frame, not a series")
    if getattr(frame.columns, "nlevels", 1) > 1:
        fix = 'Join them: frame.columns = ["_".join(map(str, names)) for names in frame.columns].'
        raise DataError("table", "must have one name a column, not several levels", fix=fix)
    names = [str(name) for name in frame.columns]
    _require_distinct("table", names)
    arrays, faults = {}, Faults()
    for position, name in enumerate(names):
        with faults.noting():
            try:
                arrays[name] = pa.Array.from_pandas(frame.iloc[:, position])
            except UNREADABLE:
                fix = "Turn it into numbers, or into text with .astype(str), or leave it out."
                place = f"table, column {name}"
                raise DataError(place, "must be of one type", fix=fix) from None
    faults.raise_any()
    index = [str(name) for name in getattr(frame.index, "names", ()) if name is not None]
    return pa.table(arrays), tuple(name for name in index if name not in names)


def _distinct(name: str, schema: pa.Schema) -> dict[str, pa.DataType]:
    try:
        names = schema.names
    except UnicodeDecodeError:
        raise DataError(name, "column names must be UTF-8 text") from None
    _require_distinct(name, names)
    return dict(zip(names, schema.types, strict=True))


def _require_distinct(where: str, names: list[str]) -> None:
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        shown = ", ".join(f'"{name}"' for name in twice[:5]) + (", ..." if len(twice) > 5 else "")
        rule = f"column names must be distinct; {shown} occurs more than once"
        raise DataError(where, rule, fix="Rename the columns in the table.")


def without_marks(table: pa.Table, marks: Sequence[str]) -> pa.Table:
    """The same with empty cells in place of those marks.

    Marks may be spelt in small or capital letters and with blanks around them or not; those that
    are numbers are taken out of columns of numbers too. `age=999` is of column age.
    """
    for at, own in enumerate(table.schema):
        named = [entry.rpartition("=") for entry in marks]
        mine = [
            mark if equals and name.strip() in table.column_names else name + equals + mark
            for name, equals, mark in named
            if not (equals and name.strip() in table.column_names and name.strip() != own.name)
        ]
        if not mine:
            continue
        column, kind = table.column(at), plain_type(own.type)
        code = None
        if is_categorical(own.type) and is_text(kind):
            column, code = encode(column)
        if is_text(kind):
            words = pa.array(sorted({mark.strip().casefold() for mark in mine}), pa.string())
            column = pc.cast(column, pa.string())
            there = pc.is_in(pc.utf8_lower(pc.utf8_trim_whitespace(column)), words)
        elif types.is_integer(own.type) or types.is_floating(own.type):
            numbers = set()
            for mark in mine:
                with contextlib.suppress(ValueError):
                    numbers.add(float(mark))
            values = pa.array(sorted(numbers), pa.float64())
            there = pc.is_in(pc.cast(column, pa.float64(), safe=False), values)
        else:
            continue
        if not pc.any(there).as_py():
            continue
        left = pc.if_else(there, pa.scalar(None, column.type), column)
        if code is not None:
            left = left.take(pa.array(code, mask=code < 0)).dictionary_encode()
        table = table.set_column(at, own.name, left)
    return table


def name_columns(where: str, table: pa.Table) -> pa.Table:
    """Trim names, leave out columns without name or content, refuse what cannot be told apart.

    A first column without a name that counts the rows is the index that pandas and R write.
    """
    names = [" ".join(name.split()) if set(name) & set("\r\n\t") else name.strip()
             for name in table.column_names]  # fmt: skip
    empty = [column.null_count == len(column) for column in table.columns]
    if table.num_columns and _counts_rows(table.column(0)):
        empty[0] = True
    kept = [at for at, name in enumerate(names) if name or not empty[at]]
    unnamed = [at + 1 for at in kept if not names[at]]
    if unnamed:
        shown = ", ".join(str(number) for number in unnamed[:5])
        rest = f" and {len(unnamed) - 5} more" if len(unnamed) > 5 else ""
        one = len(unnamed) == 1
        rule = f"column {shown} has no name" if one else f"columns {shown}{rest} have no name"
        raise DataError(where, rule, fix=_NAMES)
    left = len(names) - len(kept)
    if left:
        which = (
            "1 column without a name was" if left == 1 else f"{left} columns without a name were"
        )
        note(f"{where}: {which} left out")
    _require_distinct(where, [names[at] for at in kept])
    return table.select(kept).rename_columns([names[at] for at in kept])


def _counts_rows(column: pa.ChunkedArray) -> bool:
    if not types.is_integer(column.type) or column.null_count or not len(column):
        return False
    values = column.to_numpy()
    return bool(values[0] in (0, 1) and (values[1:] - values[:-1] == 1).all())


def _settled(where: str, table: pa.Table, habits: Habits, *, points: bool) -> Source:
    """A table of a text with fields or a sheet: columns of text are read as what they are.

    Args:
        where: The file, for refusals and remarks.
        table: The table.
        habits: What the user said about it.
        points: Whether a point is what such files write before fractions.
    """
    table = without_marks(table, habits.na)
    kinds = dict(zip(table.column_names, table.schema.types, strict=True))
    cells = {name: TextCells.of(table.column(name)) for name in kinds if is_text(kinds[name])}
    marks: set[Decimal] = set()
    if points and any(map(types.is_floating, kinds.values())):
        marks.add(".")
    for own in cells.values():
        if (own.number | own.marker).all():
            marks |= {"."} if own.spelt.point.any() else set()
            marks |= {","} if own.spelt.comma.any() else set()
    decimal = habits.decimal or (marks.pop() if len(marks) == 1 else None)
    known = replace(habits, decimal=decimal, usual="." if points else None)
    forms: dict[str, TextForm] = {}
    faults: dict[str, DataError] = {}
    plain: set[str] = set()
    for name, own in cells.items():
        form, fault = read_text(where, name, own, known)
        if fault is not None:
            faults[name] = fault
        elif form.kind == "text":
            plain.add(name)
        # Zeros in front, or a unit: a number all the same, if one is asked for.
        forms[name] = TextForm() if form.zeros or form.unit else form
    _remark(where, forms)
    clocks = set()
    for name in plain:
        clock = cells[name].matches(_CLOCK)
        if clock.any() and (clock | cells[name].matches("^$")).all():
            clocks.add(name)
    for at, name in enumerate(kinds):
        column = forms[name].apply_to(cells[name]) if name in cells else table.column(at)
        if name in clocks:
            seconds = [_seconds(text) for text in column.to_pylist()]
            column = pa.chunked_array([pa.array(seconds, pa.time32("s"))])
        elif types.is_integer(column.type) and _are_dates(column):
            place = f"{where}: column {name}"
            note(f"{place} looks like dates; they are read if written 2024-12-31")
        table = table.set_column(at, name, column)
    source = _from_arrow(where, _without_empty_end(where, table), known)
    return replace(source, faults=faults, plain=frozenset(plain - clocks))


def _without_empty_end(where: str, table: pa.Table) -> pa.Table:
    if not all(column.null_count for column in table.columns):
        return table
    valid = [np.flatnonzero(pc.is_valid(column).to_numpy()) for column in table.columns]
    last = max((int(rows[-1]) for rows in valid if rows.size), default=-1)
    if last + 1 < table.num_rows:
        note(f"{where}: {table.num_rows - last - 1:,} empty rows at its end were left out")
    return table.slice(0, last + 1)


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

    def columns(names: Sequence[str]) -> str:
        if len(names) > _SHOWN:
            return f"{len(names)} columns"
        return ("column " if len(names) == 1 else "columns ") + ", ".join(names)

    own = forms.items()
    commas = [name for name, form in own if form.kind == "number" and form.decimal == ","]
    commas = [name for name in commas if not (forms[name].whole or forms[name].grouped)]
    remarks = [("decimal commas in {}", commas)]
    for order, words in (("dmy", "day, month, year"), ("mdy", "month, day, year")):
        dates = [name for name, form in own if form.kind == "date" and form.year_last]
        dates = [name for name in dates if forms[name].order == order]
        remarks.append((f"dates of {{}} were read as {words}", dates))
    remarks.append(("separators of thousands in {}", [name for name, form in own if form.grouped]))
    limits = [name for name, form in own if form.limits]
    remarks.append(("limits such as < or > in {} were read as their number", limits))
    for text, names in remarks:
        if names:
            note(f"{where}: {text.format(columns(names))}")
    marked = [name for name, form in own if form.missing]
    if marked:
        marks = sorted({mark for name in marked for mark in forms[name].missing})
        shown = ", ".join(f'"{mark}"' for mark in marks)
        verb = "was" if len(marks) == 1 else "were"
        note(f"{where}: {shown} {verb} read as missing in {columns(marked)}")
