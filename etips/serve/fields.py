"""What somebody may fill in: the columns of the training data, before they became features.

A category is one field with its levels, not a column a level; a value that may be missing is one
field that may be left out, not a value and its mark.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from etips.data.coded import Floats32
from etips.data.decisions import Ints
from etips.data.scale import LOG_SHIFT, Scaler
from etips.data.schema import MISSING_SUFFIX, Schema
from etips.data.tables.features import FeatureBlock, arrange, carry, join

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
        least: Smallest number that has a place on its scale; None where all have.
    """

    name: str
    columns: tuple[int, ...]
    levels: tuple[str, ...] = ()
    mark: int | None = None
    may_miss: bool = False
    least: float | None = None

    def read(self, row: Floats32) -> Value:
        """Its value in a row of features; None where that is not known."""
        own = row[list(self.columns)]
        if np.isnan(own).any():
            return None
        if not self.levels:
            return float(own[0])
        return self.levels[int(own.argmax())] if own.any() else None

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
    """The fields of a schema.

    Args:
        schema: Of the training data.
        sequence: Fields of a step.
        static: Fields of a stay.
    """

    schema: Schema
    sequence: tuple[Field, ...]
    static: tuple[Field, ...]

    @classmethod
    def of(cls, schema: Schema, scaler: Scaler | None) -> "Form":
        """The fields of a policy's data."""
        logs = frozenset() if scaler is None else frozenset(scaler.log)
        return cls(
            schema,
            _fields(schema, schema.sequence, logs),
            _fields(schema, schema.static, logs),
        )

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


def _fields(schema: Schema, names: Sequence[str], logs: frozenset[str]) -> tuple[Field, ...]:
    place = {name: number for number, name in enumerate(names)}
    marks = {own + MISSING_SUFFIX for own in schema.indicators} & set(names)
    made: dict[str, Field] = {}
    for name in names:
        if name in marks:
            continue
        source = next((own for own in schema.categories if name.startswith(f"{own}=")), name)
        if source in made:
            continue
        levels = schema.categories.get(source, ())
        columns = [f"{source}={level}" for level in levels] if levels else [name]
        columns = [own for own in columns if own in place]
        made[source] = Field(
            source,
            tuple(place[own] for own in columns),
            tuple(own[len(source) + 1 :] for own in columns) if levels else (),
            place.get(source + MISSING_SUFFIX) if source in schema.indicators else None,
            schema.may_be_missing(columns[0]),
            -0.9 * LOG_SHIFT if name in logs else None,
        )
    return tuple(made.values())


def _encode(
    fields: Sequence[Field],
    rows: Sequence[Sequence[Value]],
    starts: Ints,
    schema: Schema,
    names: Sequence[str],
) -> Floats32:
    """Rows of fields as rows of features, by the steps that a table goes through."""
    numeric = {own.name: number for number, own in enumerate(fields) if not own.levels}
    if len(numeric) == len(fields) and not schema.indicators:
        values = np.array(rows, np.float32).reshape(len(rows), len(fields))
        block = FeatureBlock(tuple(numeric), values)
    else:
        columns = list(zip(*rows, strict=True)) or [() for _ in fields]
        block = _joined(fields, columns, len(rows), schema)
    if schema.indicators or np.isnan(block.values).any():
        block = carry(block, starts, schema.indicators)
    return arrange("stays", block, names).values


def _joined(
    fields: Sequence[Field], columns: Sequence[Sequence[Value]], n: int, schema: Schema
) -> FeatureBlock:
    numbers = [own for own in fields if not own.levels]
    place = {own.name: number for number, own in enumerate(fields)}
    matrix = np.empty((n, len(numbers)), np.float32)
    for number, own in enumerate(numbers):
        matrix[:, number] = np.array(columns[place[own.name]], np.float32)
    categories = {}
    for own in fields:
        if own.levels:
            code = {level: number for number, level in enumerate(own.levels)}
            codes = [code.get(str(value), -1) for value in columns[place[own.name]]]
            categories[own.name] = (own.levels, np.array(codes, np.int64))
    position = {own.name: number for number, own in enumerate(numbers)}
    block = join([own.name for own in fields], position, matrix, categories)
    levels = {name: own for name, own in schema.categories.items() if own}
    return FeatureBlock(block.names, block.values, levels)
