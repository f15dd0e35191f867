"""Columns of a table that came as text: names put in order, numbers and dates read, faults kept."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from etips.data.tables.arrow_columns import is_text
from etips.data.tables.data_frames import require_distinct
from etips.data.tables.missing_marks import without_marks
from etips.data.tables.number_cells import Decimal, matches
from etips.data.tables.text_cells import Habits, TextCells, TextForm, read_text
from etips.errors import DataError
from etips.notes import note

_NAMES = "Give every column a name in the first line; of two lines of names keep one."
_SHOWN = 3  # columns named in a remark
_CLOCK = r"^([01]?\d|2[0-3]):[0-5]\d(:[0-5]\d)?$"
_FIRST_DAY, _LAST_DAY = 19_000_101, 21_001_231  # of whole numbers that may be dates


@dataclass(frozen=True, eq=False)
class Settled:
    """A table whose columns have types.

    Args:
        table: The table.
        faults: What is wrong with a column of text, to be told if it must be numbers or dates.
        plain: Columns of text in which nothing is a number or a date.
        habits: How its numbers and dates are written, as far as all of it tells.
    """

    table: pa.Table
    faults: dict[str, DataError]
    plain: frozenset[str] = frozenset()
    habits: Habits = field(default_factory=Habits)


def one_line(name: str) -> str:
    """A name as it is called: without blanks around it, and in one line."""
    return " ".join(name.split()) if any(sign in name for sign in "\r\n\t") else name.strip()


def name_columns(where: str, table: pa.Table) -> pa.Table:
    """Trim names, leave out columns without name or content, refuse what cannot be told apart.

    A first column without a name that counts the rows is the index that pandas and R write.
    """
    names = [one_line(name) for name in table.column_names]
    kept, unnamed = [], []
    for position, name in enumerate(names):
        column = table.column(position)
        if name or not (column.null_count == len(column) or _counts(position, column)):
            kept.append(position)
        if not name and position in kept:
            unnamed.append(position + 1)
    if unnamed:
        shown = ", ".join(str(number) for number in unnamed[:5])
        rest = f" and {len(unnamed) - 5} more" if len(unnamed) > 5 else ""
        one = len(unnamed) == 1
        rule = f"column {shown} has no name" if one else f"columns {shown}{rest} have no name"
        raise DataError(where, rule, fix=_NAMES)
    left = len(names) - len(kept)
    if left:
        said = "1 column without a name was" if left == 1 else f"{left} columns without a name were"
        note(f"{where}: {said} left out")
    require_distinct(where, [names[position] for position in kept])
    return table.select(kept).rename_columns([names[position] for position in kept])


def _counts(position: int, column: pa.ChunkedArray) -> bool:
    if position or not pa.types.is_integer(column.type) or column.null_count or not len(column):
        return False
    values = column.to_numpy()
    return bool(values[0] in (0, 1) and (values[1:] - values[:-1] == 1).all())


def settle(
    where: str, table: pa.Table, habits: Habits, *, seen: Collection[Decimal], usual: Decimal | None
) -> Settled:
    """Read columns of text as what they are.

    Args:
        where: The file, for refusals and remarks.
        table: The table.
        habits: What the user said about it.
        seen: Marks of fractions that columns of numbers have for sure.
        usual: Mark of a fraction in such files, where nothing is seen.
    """
    table = without_marks(table, habits.na)
    cells = {
        name: TextCells.of(table.column(name))
        for name, kind in zip(table.column_names, table.schema.types, strict=True)
        if is_text(kind)
    }
    known = replace(habits, decimal=habits.decimal or _mark(cells.values(), seen), usual=usual)
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
    clocks = {name for name in plain if _are_clocks(cells[name])}
    tidy = _tidy(where, pa.table(columns), clocks)
    return Settled(tidy, faults, frozenset(plain - clocks), known)


def _tidy(where: str, table: pa.Table, clocks: Collection[str]) -> pa.Table:
    """Times of day as such, empty rows at the end left out; dates without marks are told.

    Args:
        where: The file.
        table: The table.
        clocks: Columns of text that are times of day.
    """
    for at, own in enumerate(table.schema):
        column = table.column(at)
        if own.name in clocks:
            seconds = [_seconds(text) for text in column.to_pylist()]
            table = table.set_column(at, own.name, pa.array(seconds, pa.time32("s")))
        elif pa.types.is_integer(own.type) and _are_dates(column):
            place = f"{where}: column {own.name}"
            note(f"{place} looks like dates; they are read if written 2024-12-31")
    if all(column.null_count for column in table.columns):
        last = max((_last(column) for column in table.columns), default=-1)
        if last + 1 < table.num_rows:
            note(f"{where}: {table.num_rows - last - 1:,} empty rows at its end were left out")
            table = table.slice(0, last + 1)
    return table


def _are_clocks(cells: TextCells) -> bool:
    """Whether all texts that are not empty are times of day, and there is one."""
    clock = matches(cells.texts, _CLOCK)
    return bool(clock.any() and (clock | cells.empty).all())


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


def _last(column: pa.ChunkedArray) -> int:
    """Row of the last cell that is not empty."""
    there = np.flatnonzero(pc.is_valid(column).to_numpy())
    return int(there[-1]) if there.size else -1


def _mark(columns: Iterable[TextCells], seen: Collection[Decimal]) -> Decimal | None:
    """The mark of fractions that all columns agree on."""
    marks: set[Decimal] = set(seen)
    for own in columns:
        if (own.number | own.marker).all():
            marks |= {"."} if own.numbers.point.any() else set()
            marks |= {","} if own.numbers.comma.any() else set()
    return marks.pop() if len(marks) == 1 else None


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
