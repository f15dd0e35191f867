"""What may be filled in: the columns of the training data, and stays that are asked about in JSON.

A category is one field with its levels, not a column a level; a value that may be missing is one
field that may be left out, not a value and its mark.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, create_model
from pydantic import Field as Limits

from etips.data.coded import Floats32
from etips.data.decisions import NO_ACTION, Bools, Ints
from etips.data.intake.features import arrange, carry, join
from etips.data.scale import LOG_SHIFT, Scaler
from etips.data.schema import MISSING_SUFFIX, Schema
from etips.data.trajectories import Trajectories

Value = float | str | None
"""A number, a level of a category, or nothing."""

LARGEST = 1e30
"""No measurement is larger; a float32 holds it."""

MAX_STAYS, MAX_STEPS = 10_000, 2_000
"""Stays of a request, and steps of a stay."""

_STRICT = ConfigDict(strict=True, extra="forbid", frozen=True)
_KEYS = ("stays", "steps", "static", "values", "action", "every_step")


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
    marks = {own + MISSING_SUFFIX for own in schema.indicators}
    made: dict[str, Field] = {}
    for name in names:
        source = next((own for own in schema.categories if name.startswith(f"{own}=")), name)
        if name in marks or source in made:
            continue
        levels = schema.categories.get(source, ())
        columns = {f"{source}={level}": level for level in levels} or {name: ""}
        columns = {own: level for own, level in columns.items() if own in place}
        made[source] = Field(
            source,
            tuple(place[own] for own in columns),
            tuple(columns.values()) if levels else (),
            place.get(source + MISSING_SUFFIX) if source in schema.indicators else None,
            schema.may_be_missing(next(iter(columns))),
            -0.9 * LOG_SHIFT if name in logs else -LARGEST,
            static,
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
    numbers = [k for k, own in enumerate(fields) if not own.levels]
    whole = len(numbers) == len(fields)
    matrix = np.array(rows if whole else [[row[k] for k in numbers] for row in rows], np.float32)
    categories = {}
    for k, own in enumerate(fields):
        if own.levels:
            code: dict[Value, int] = {level: number for number, level in enumerate(own.levels)}
            codes = np.array([code.get(row[k], -1) for row in rows], np.int64)
            categories[own.name] = (own.levels, codes)
    block = join(
        [own.name for own in fields],
        {fields[k].name: place for place, k in enumerate(numbers)},
        matrix.reshape(len(rows), len(numbers)),
        categories,
    )
    block = replace(block, levels={name: own for name, own in schema.categories.items() if own})
    if schema.indicators or np.isnan(block.values).any():
        block = carry(block, starts, schema.indicators)
    return arrange("stays", block, names).values


class Question:
    """What a request must look like, and the stays that one is about.

    Args:
        form: Fields of the training data.
        labels: What actions are called.
        earlier_actions: Whether the policy reads the actions taken so far.
    """

    def __init__(self, form: Form, labels: Sequence[str], *, earlier_actions: bool) -> None:
        self._form, self._earlier = form, earlier_actions
        self._number = {label: number for number, label in enumerate(labels)}
        self.model = _request(form, tuple(self._number), earlier_actions=earlier_actions)
        self.known = frozenset((*_KEYS, *(own.name for own in (*form.sequence, *form.static))))
        """Keys that a message may repeat."""

    def read(self, body: bytes) -> tuple[Trajectories, Ints]:
        """The stays of a request, and of each decision that is asked for its place.

        Raises pydantic's `ValidationError` for what is not as described.
        """
        request: Any = self.model.model_validate_json(body)
        form = self._form
        steps = [step for own in request.stays for step in own.steps]
        lengths = np.array([len(own.steps) for own in request.stays], np.int64)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        rows: list[Sequence[Value]] = [tuple(vars(step.values).values()) for step in steps]
        static = None
        if form.static:
            static = form.stays([tuple(vars(own.static).values()) for own in request.stays])
        stays = Trajectories(
            sequence=form.steps(rows, np.repeat(offsets[:-1], lengths)),
            offsets=offsets,
            schema=replace(form.schema, provenance={}),
            static=static,  # type: ignore[arg-type]
        )
        if not self._earlier:
            return stays, np.arange(offsets[-1]) if request.every_step else offsets[1:] - 1
        actions = np.array([self._number.get(step.action, NO_ACTION) for step in steps], np.int64)
        logged = _with_log(stays, actions, every_step=request.every_step)
        return logged, np.arange(logged.n_decisions)


def _with_log(stays: Trajectories, actions: Ints, *, every_step: bool) -> Trajectories:
    """The stays with the actions taken so far, for a policy that reads them.

    What to do next is asked at a step of its own where a decision sees earlier ones only; no
    decision sees the features of that step. The action at the step that is asked about is not known
    yet; any will do, since no decision sees its own.
    """
    lag = stays.schema.lag
    last = stays.offsets[1:] - 1
    order = np.arange(stays.n_steps)
    if lag:
        order = np.insert(order, last + 1, last)
    offsets = stays.offsets + lag * np.arange(len(stays.offsets))
    ends = offsets[1:] - 1
    action = actions[order].copy()
    eligible: Bools = action != NO_ACTION if every_step else np.zeros(len(order), bool)
    eligible[ends] = True
    action[ends] = 0
    step = np.arange(len(order)) - np.repeat(offsets[:-1], np.diff(offsets))
    return Trajectories(
        sequence=stays.sequence[order],
        offsets=offsets,
        schema=stays.schema,
        static=stays.static,
        action=action,
        loss=np.zeros(len(order)),
        eligible=eligible & (step >= lag),
    )


def _request(form: Form, labels: tuple[str, ...], *, earlier_actions: bool) -> type[BaseModel]:
    """The model of a request; its JSON schema is part of the description of the service."""
    values = _model("Values", {f"f{k}": _entry(own) for k, own in enumerate(form.sequence)})
    step: dict[str, object] = {"values": (values, ... if form.sequence else values())}
    if earlier_actions:
        why = "What was done at this step; leave it out where that is not known, or not yet."
        step["action"] = (Literal[labels] | None, Limits(default=None, description=why))
    why = "Steps in order; the newest comes last."
    many = Limits(min_length=1, max_length=MAX_STEPS, description=why)
    stay: dict[str, object] = {"steps": (list[_model("Step", step)], many)}  # type: ignore[misc]
    if form.static:
        static = {f"f{k}": _entry(own) for k, own in enumerate(form.static)}
        stay["static"] = (_model("Static", static), ...)
    every = "Answer every step, and not only what to do now."
    fields: dict[str, object] = {
        "stays": (
            list[_model("Stay", stay)],  # type: ignore[misc]
            Limits(min_length=1, max_length=MAX_STAYS),
        ),
        "every_step": (bool, Limits(default=False, description=every)),
    }
    return _model("Recommend", fields)


def _model(name: str, fields: Mapping[str, object]) -> type[BaseModel]:
    made: type[BaseModel] = create_model(name, __config__=_STRICT, **fields)  # type: ignore[call-overload]
    return made


def _entry(field: Field) -> tuple[object, object]:
    """Type and limits of a field; it goes by the column's name, which may be no name in Python."""
    kind: object = Annotated[float, Limits(ge=field.least, le=LARGEST, allow_inf_nan=False)]
    if field.levels:
        kind = Literal[field.levels]
    if field.may_miss:
        return kind | None, Limits(None, alias=field.name)  # type: ignore[operator]
    return kind, Limits(..., alias=field.name)
