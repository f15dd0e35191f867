"""What may be filled in: the columns of the training data.

A category is one field with its levels, not a column a level; a value that may be missing is one
field that may be left out, not a value and its mark.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from etips.data.coded import Floats32
from etips.data.decisions import Ints
from etips.data.intake.features import arrange, carry, join
from etips.data.scale import LOG_SHIFT, Scaler
from etips.data.schema import MISSING_SUFFIX, Schema

Value = float | str | None
"""A number, a level of a category, or nothing."""

LARGEST = 1e30
"""No measurement is larger; a float32 holds it."""


@dataclass(frozen=True)
class Field:
    """A column of the training data.

    Args:
        name: Of the column.
        columns: Places of its features among those of its kind; several for a category.
        levels: Of a category; none for a number.
        mark: Place of the feature that says whether it is missing, if there is one.
        may_miss: Whether it may be missing.
        least: Smallest number that may be filled in: one that has a place on a logarithmic scale.
        static: Whether it is of a stay and not of a step.
    """

    name: str
    columns: tuple[int, ...]
    levels: tuple[str, ...] = ()
    mark: int | None = None
    may_miss: bool = False
    least: float = -LARGEST
    static: bool = False

    def read(self, row: Floats32) -> Value:
        """Its value in a row of features; None where that is not known."""
        features = row[list(self.columns)]
        if np.isnan(features).any():
            return None
        if not self.levels:
            return float(features[0])
        return self.levels[int(features.argmax())] if features.any() else None

    def missing(self, row: Floats32) -> bool:
        """Whether it was not measured at that row: what stands there is older, or nothing."""
        marked = self.mark is not None and bool(row[self.mark] == 1)
        return marked or bool(np.isnan(row[list(self.columns)]).any())

    def write(self, row: Floats32, value: Value) -> None:
        """Put a value into a row of features."""
        if value is None:
            row[list(self.columns)] = np.nan
        elif self.levels:
            row[list(self.columns)] = [float(level == value) for level in self.levels]
        else:
            row[self.columns[0]] = value
        if self.mark is not None:
            row[self.mark] = float(value is None)


@dataclass(frozen=True)
class Form:
    """The fields of a schema: those of a step (`sequence`) and those of a stay (`static`)."""

    schema: Schema
    sequence: tuple[Field, ...]
    static: tuple[Field, ...]

    @classmethod
    def of(cls, schema: Schema, scaler: Scaler | None) -> "Form":
        """The fields of a policy's data."""
        logs = () if scaler is None else scaler.log
        sequence = _fields(schema, schema.sequence, logs, static=False)
        return cls(schema, sequence, _fields(schema, schema.static, logs, static=True))

    def steps(self, rows: Sequence[Sequence[Value]], starts: Ints) -> Floats32:
        """Features of steps, in the order of the schema; what is missing is carried forward.

        Args:
            rows: A value a field of each step.
            starts: First step of the stay that each step belongs to, shape (n,).
        """
        return _encode(self.sequence, rows, starts, self.schema, self.schema.sequence)

    def stays(self, rows: Sequence[Sequence[Value]]) -> Floats32:
        """Static features of stays."""
        return _encode(self.static, rows, np.arange(len(rows)), self.schema, self.schema.static)


def _fields(
    schema: Schema, names: Sequence[str], logs: Collection[str], *, static: bool
) -> tuple[Field, ...]:
    place = {name: number for number, name in enumerate(names)}
    marks = {name + MISSING_SUFFIX for name in schema.indicators}
    fields: dict[str, Field] = {}
    for name in names:
        source = next((own for own in schema.categories if name.startswith(f"{own}=")), name)
        if name in marks or source in fields:
            continue
        levels = schema.categories.get(source, ())
        columns = {f"{source}={level}": level for level in levels} or {name: ""}
        columns = {column: level for column, level in columns.items() if column in place}
        fields[source] = Field(
            source,
            tuple(place[column] for column in columns),
            tuple(columns.values()) if levels else (),
            place.get(source + MISSING_SUFFIX) if source in schema.indicators else None,
            schema.may_be_missing(next(iter(columns))),
            -0.9 * LOG_SHIFT if name in logs else -LARGEST,
            static,
        )
    return tuple(fields.values())


def _encode(
    fields: Sequence[Field],
    rows: Sequence[Sequence[Value]],
    starts: Ints,
    schema: Schema,
    names: Sequence[str],
) -> Floats32:
    """Rows of fields as rows of features, by the steps that a table goes through."""
    cells = dict(zip([field.name for field in fields], zip(*rows, strict=True), strict=True))
    numbers = [field.name for field in fields if not field.levels]
    matrix = np.array([cells[name] for name in numbers], np.float32).T
    categories = {}
    for field in fields:
        if field.levels:
            code = {level: number for number, level in enumerate(field.levels)}
            codes = [-1 if level is None else code[str(level)] for level in cells[field.name]]
            categories[field.name] = (field.levels, np.array(codes, np.int64))
    places = {name: place for place, name in enumerate(numbers)}
    block = join(list(cells), places, matrix.reshape(len(rows), len(numbers)), categories)
    block = replace(block, levels={name: own for name, own in schema.categories.items() if own})
    if schema.indicators or np.isnan(block.values).any():
        block = carry(block, starts, schema.indicators)
    return arrange("stays", block, names).values
