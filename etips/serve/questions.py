"""Stays that somebody asks about in JSON, held against the schema of the training data."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, TypeAdapter, create_model
from pydantic import Field as Limits

from etips.data.decisions import NO_ACTION, Bools, Ints
from etips.data.trajectories import Trajectories
from etips.serve.fields import LARGEST, Field, Form, Value

MOST_STAYS, MOST_STEPS = 10_000, 2_000
"""Stays of a request, and steps of a stay."""

_STRICT = ConfigDict(strict=True, extra="forbid", frozen=True)


class Question:
    """What a request must look like, and the stays that one is about.

    Args:
        form: Fields of the training data.
        labels: What actions are called.
        earlier_actions: Whether the policy reads the actions taken so far.
    """

    def __init__(self, form: Form, labels: Sequence[str], *, earlier_actions: bool) -> None:
        self.form = form
        self._earlier = earlier_actions
        self._number = {label: number for number, label in enumerate(labels)}
        self.model = _request(form, tuple(dict.fromkeys(labels)), earlier_actions=earlier_actions)
        self._adapter: TypeAdapter[Any] = TypeAdapter(self.model)
        self.known = frozenset(_names(form))
        """Keys that a message may repeat."""

    def read(self, body: bytes) -> tuple[Trajectories, Ints]:
        """The stays of a request, and of each decision that is asked for its place.

        Raises pydantic's `ValidationError` for what is not as described.
        """
        request = self._adapter.validate_json(body)
        return self.stays(request)

    def stays(self, request: Any) -> tuple[Trajectories, Ints]:  # noqa: ANN401  # made above
        """The same of a request that was read."""
        form, lag = self.form, self.form.schema.lag
        steps = [own.steps for own in request.stays]
        lengths = np.array([len(own) for own in steps], np.int64)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        starts = np.repeat(offsets[:-1], lengths)
        rows: list[Sequence[Value]] = [
            tuple(vars(step.values).values()) for own in steps for step in own
        ]
        static = [tuple(vars(own.static).values()) for own in request.stays] if form.static else []
        sequence = form.steps(rows, starts)
        actions = self._actions(steps) if self._earlier else None
        stays = Trajectories(
            sequence=sequence,
            offsets=offsets,
            schema=replace(form.schema, provenance={}),
            static=form.stays(static) if form.static else None,  # type: ignore[arg-type]
        )
        if actions is None:
            asked = np.arange(offsets[-1]) if request.every_step else offsets[1:] - 1
            return stays, asked
        return _with_log(stays, actions, lag, every_step=request.every_step)

    def _actions(self, steps: Sequence[Any]) -> Ints:
        given = [step.action for own in steps for step in own]
        return np.array([self._number.get(own, NO_ACTION) for own in given], np.int64)


def _with_log(
    stays: Trajectories, actions: Ints, lag: int, *, every_step: bool
) -> tuple[Trajectories, Ints]:
    """The stays with the actions taken so far, for a policy that reads them.

    What to do next is asked at a step of its own where a decision sees earlier ones only: its
    features are nobody's, since no decision sees them. The action at the step that is asked about
    is not known yet; any will do, since no decision sees its own.
    """
    lengths = np.diff(stays.offsets)
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
    logged = Trajectories(
        sequence=stays.sequence[order],
        offsets=offsets,
        schema=stays.schema,
        static=stays.static,
        action=action,
        loss=np.zeros(len(order)),
        eligible=eligible & (np.arange(len(order)) - np.repeat(offsets[:-1], lengths + lag) >= lag),
    )
    return logged, np.arange(logged.n_decisions)


def _request(form: Form, labels: tuple[str, ...], *, earlier_actions: bool) -> type[BaseModel]:
    """The model of a request; its JSON schema is part of the description of the service."""
    values = _model("Values", form.sequence)
    step: dict[str, object] = {"values": (values, ... if form.sequence else values())}
    if earlier_actions:
        why = "What was done at this step; leave it out where that is not known, or not yet."
        step["action"] = (Literal[labels] | None, Limits(default=None, description=why))
    steps = _many(create_model("Step", __config__=_STRICT, **step))  # type: ignore[call-overload]
    why = "Steps in order; the newest comes last."
    stay: dict[str, object] = {
        "steps": (steps, Limits(min_length=1, max_length=MOST_STEPS, description=why))
    }
    if form.static:
        stay["static"] = (_model("Static", form.static), ...)
    stays = _many(create_model("Stay", __config__=_STRICT, **stay))  # type: ignore[call-overload]
    every = "Answer every step, and not only what to do now."
    fields: dict[str, object] = {
        "stays": (stays, Limits(min_length=1, max_length=MOST_STAYS)),
        "every_step": (bool, Limits(default=False, description=every)),
    }
    made: type[BaseModel] = create_model("Recommend", __config__=_STRICT, **fields)  # type: ignore[call-overload]
    return made


def _many(model: type[BaseModel]) -> object:
    return list[model]  # type: ignore[valid-type]


def _model(name: str, fields: Sequence[Field]) -> type[BaseModel]:
    made: dict[str, object] = {}
    for number, own in enumerate(fields):
        kind, default = _kind(own), None if own.may_miss else ...
        made[f"f{number}"] = (kind, Limits(default, alias=own.name))
    model: type[BaseModel] = create_model(name, __config__=_STRICT, **made)  # type: ignore[call-overload]
    return model


def _kind(field: Field) -> object:
    kind: object
    if field.levels:
        kind = Literal[field.levels]
    else:
        least = -LARGEST if field.least is None else field.least
        kind = Annotated[float, Limits(ge=least, le=LARGEST, allow_inf_nan=False)]
    return kind | None if field.may_miss else kind


def _names(form: Form) -> set[str]:
    own = {"stays", "steps", "static", "values", "action", "every_step"}
    return own | {field.name for field in (*form.sequence, *form.static)}
