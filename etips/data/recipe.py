"""How the columns of a table were read: learned once, kept in the schema, applied again."""

import math
import types
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from itertools import product
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from etips.data.intake.dose_classes import DoseClasses
from etips.errors import SettingError

T = TypeVar("T")


def to_document(value: object) -> object:
    """A JSON-ready copy of a dataclass of plain values; NaN is written as null."""
    if is_dataclass(value) and not isinstance(value, type):
        return {own.name: to_document(getattr(value, own.name)) for own in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_document(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_document(item) for item in value]
    if isinstance(value, float) and math.isnan(value):
        return None
    return value


def from_document(kind: type[T], document: object, *, where: str) -> T:
    """Rebuild a dataclass; a field that a file of before lacks has its default."""
    return cast(T, _value(kind, document, where))


def _value(kind: Any, document: Any, where: str) -> object:  # noqa: ANN401  # a type hint, JSON
    origin, args = get_origin(kind), get_args(kind)
    damaged = SettingError(where, "is not as it was saved")
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        if not isinstance(document, dict) or not set(document) <= set(hints):
            raise damaged
        given = {n: _value(hints[n], item, f"{where}, {n}") for n, item in document.items()}
        try:
            return cast(type, kind)(**given)
        except TypeError:
            raise damaged from None
    if origin in (Union, types.UnionType):
        if document is None and type(None) in args:
            return None
        return _value(next(arg for arg in args if arg is not type(None)), document, where)
    if origin is tuple and isinstance(document, list):
        return tuple(_value(args[0], item, where) for item in document)
    if origin is Mapping and isinstance(document, dict):
        return {str(key): _value(args[1], item, where) for key, item in document.items()}
    if kind is float and document is None:
        return math.nan
    true_or_false = isinstance(document, bool)
    if kind is float and isinstance(document, int | float) and not true_or_false:
        return float(document)
    fits = isinstance(kind, type) and origin is None and isinstance(document, kind)
    if (fits and true_or_false == (kind is bool)) or (origin is Literal and document in args):
        return cast(object, document)
    raise damaged


Kind = Literal["number", "category", "yes_no", "hours", "years", "age", "duration"]
"""What a feature column holds. `hours`: times as hours since the stay's first row; `years`: times
as years since 2000; `age`: dates of birth as years; `duration`: lengths of time as hours."""

Combine = Literal["last", "first", "mean", "sum", "min", "max"]
"""What becomes of several values of one step."""

Missing = Literal["carry", "refuse"]
"""A missing feature value: refuse the table, or carry the last one forward and mark it."""


@dataclass(frozen=True)
class ColumnKind:
    """How a feature column is read.

    Args:
        kind: What it holds.
        levels: Levels of a category, in the order of their columns; the two words of yes and no,
            the one that counts 0 first; none for booleans.
        at: Column of the date that an age is counted to; None: the time of the stay's first row.
    """

    kind: Kind = "number"
    levels: tuple[str, ...] = ()
    at: str | None = None


@dataclass(frozen=True)
class StepRule:
    """Steps of equal length, counted from each stay's first row.

    Args:
        every: Length of a step as it was asked for, "4h".
        length: The same in seconds; in units of the step column where that holds numbers.
        clock: Whether the step column holds times.
        combine: What becomes of several values of one step, by column; others keep the last.
    """

    every: str
    length: float
    clock: bool = True
    combine: Mapping[str, Combine] = field(default_factory=dict)


@dataclass(frozen=True)
class ActionReading:
    """What the table calls each action.

    Args:
        columns: Columns of the action; more than one, and an action is a combination.
        labels: By action number, what stands in each of the columns (text as it is, a code as its
            digits).
    """

    columns: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Outcome:
    """Where the loss comes from.

    Args:
        kind: Whether the column holds a loss or a reward.
        rule: How a loss is made of it: as it is, minus it, or one minus it.
        words: What was read as 1, where the column holds words or codes.
        others: What was read as 0 there.
    """

    kind: Literal["loss", "reward"] = "loss"
    rule: Literal["as_it_is", "minus", "one_minus"] = "as_it_is"
    words: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recipe:
    """How a table was read, so that the next one is read in the same way.

    Args:
        kinds: Kind of each feature column of the table, by its name there.
        numbered: Roles that no column plays ("stay", "step"): rows are numbered instead.
        missing: What becomes of missing feature values.
        elapsed: Name of the feature that holds the time since the row before, or None.
        action: Labels of the actions, where they are not 0..K-1 as they stand.
        doses: Classes of each column of doses.
        outcome: Where the loss comes from.
        every: Length of a step, where rows were put into steps.
    """

    kinds: Mapping[str, ColumnKind] = field(default_factory=dict)
    numbered: tuple[str, ...] = ()
    missing: Missing = "carry"
    elapsed: str | None = None
    action: ActionReading | None = None
    doses: tuple[DoseClasses, ...] = ()
    outcome: Outcome = field(default_factory=Outcome)
    every: StepRule | None = None


@dataclass(frozen=True)
class Component:
    """One dose, or one column, of actions that combine several.

    Args:
        name: Of the dose or column.
        levels: What it can be, classes of a dose from none upwards.
        of_action: Which of the levels each action has.
        descriptions: The levels at length: a class of doses with its median and unit.
    """

    name: str
    levels: tuple[str, ...]
    of_action: tuple[int, ...]
    descriptions: tuple[str, ...] = ()


def find_components(recipe: Recipe | None) -> tuple[Component, ...]:
    """Doses or columns that make up an action, the slowest index first; none for a plain one."""
    if recipe is None:
        return ()
    if recipe.doses:
        numbers = product(*(range(dose.n_classes) for dose in recipe.doses))
        return tuple(
            Component(dose.name, dose.labels, own, dose.descriptions)
            for dose, own in zip(recipe.doses, zip(*numbers, strict=True), strict=True)
        )
    if recipe.action is None or len(recipe.action.columns) < 2:
        return ()
    components = []
    for name, *labels in zip(recipe.action.columns, *recipe.action.labels, strict=True):
        levels = tuple(dict.fromkeys(labels))
        of_action = tuple(levels.index(label) for label in labels)
        components.append(Component(name, levels, of_action, levels))
    return tuple(components)
