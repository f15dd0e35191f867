"""What the service is asked and answers, as its description says; how stays are read from JSON."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, create_model

from etips.data.decisions import NO_ACTION, Ints
from etips.data.trajectories import Trajectories
from etips.serve.fields import LARGEST, Form, Value
from etips.serve.fields import Field as Column

MAX_STAYS, MAX_STEPS = 10_000, 2_000
"""Stays of a request, and steps of a stay."""

MAX_CELLS = 4_000_000
"""Most that is read: objects of a request times fields and ten; 40,000 steps of 40 fields, 1 s."""

_MAX_FAULTS = 20
_BRANCHES = ("float", "constrained-float", "none")
_KEYS = ("stays", "steps", "static", "values", "action", "every_step")
_RULES = {
    "missing": "must be given",
    "extra_forbidden": "is not a field of the training data",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "greater_than_equal": "is below what is possible",
    "less_than_equal": "is above what is possible",
    "literal_error": "must be one of the levels that the training data have",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "too_short": "must not be empty",
    "too_long": "has too many entries",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "json_invalid": "must be JSON",
}


class _Exact(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Asked(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Decision(_Exact):
    """What to do at one step."""

    stay: int = Field(description="Number of the stay in the request, from 0.")
    step: int = Field(description="Number of the step within its stay, from 0.")
    abstained: bool = Field(
        description="No action has enough support among clinicians: wait, there is no advice."
    )
    recommended: str | None = Field(description="The likeliest action; null where it abstains.")
    number: int | None = Field(description="The same by its number.")
    parts: dict[str, str] | None = Field(
        description="What the action is made of, where it combines several; null otherwise."
    )
    support: float | None = Field(
        description="How often clinicians take that action with such patients; null if not known."
    )
    probabilities: list[float] = Field(
        description="Of each action under the policy; where it abstains, under the clinicians."
    )
    clinicians: list[float] | None = Field(description="Of each action under the clinicians.")
    supported: list[bool] = Field(description="Which actions have enough support.")


class Recommendation(_Exact):
    """Answers, in the order of the request."""

    notice: str
    actions: list[str] = Field(description="What the actions are called, by number.")
    acts: str = Field(
        description="`likeliest`, or `draws`: what was evaluated draws by the probabilities."
    )
    least_support: float
    decisions: list[Decision]


class Fault(_Exact):
    """What is wrong with a request."""

    place: str
    rule: str


class Refusal(_Exact):
    """A request that was not answered."""

    detail: str
    faults: list[Fault] = Field(default_factory=list)


class Health(_Exact):
    """Whether the service answers."""

    status: str
    version: str


class FeatureCard(_Exact):
    """A column that the policy reads."""

    name: str
    static: bool
    levels: list[str] | None = Field(description="Of a category; null for a number.")
    may_be_missing: bool


class ActionCard(_Exact):
    """An action."""

    number: int
    name: str
    words: str
    parts: dict[str, str] | None
    logged_share: float | None = Field(
        description="Share of the training decisions; null where that would tell of a few people."
    )


class EstimateCard(_Exact):
    """What an evaluation found; never a number without its verdict."""

    policy: str
    verdict: str
    finding: str
    risk: float | None
    low: float | None
    high: float | None
    clinicians: float | None = Field(description="Mean logged loss.")
    reasons: list[str]
    in_sample: bool


class PolicyCard(_Exact):
    """What the policy is."""

    notice: str
    intended_use: str
    version: str
    fingerprint: str = Field(description="Of the policy.")
    data_fingerprint: str | None = Field(description="Of the data that it was learned from.")
    method: str | None
    settings: dict[str, JsonValue]
    provenance: dict[str, str]
    acts: str
    least_support: float
    lag: int = Field(description="1: a decision sees earlier steps only; 0: its own too.")
    reads_actions: bool = Field(description="Whether it reads the actions taken so far.")
    features: list[FeatureCard]
    actions: list[ActionCard]
    estimates: list[EstimateCard] = Field(description="Empty until `etips evaluate RUN DATA`.")


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

    def is_too_large(self, body: bytes) -> bool:
        """Whether reading it would take long; steps are objects, and cost their fields each."""
        return body.count(b"{") * (len(self._form.sequence) + 10) > MAX_CELLS

    def read(self, body: bytes) -> tuple[Trajectories, Ints]:
        """The stays of a request, and of each decision that is asked for its place.

        Raises pydantic's `ValidationError` for what is not as described.
        """
        request: Any = self.model.model_validate_json(body)
        form = self._form
        steps = [step for stay in request.stays for step in stay.steps]
        lengths = np.array([len(stay.steps) for stay in request.stays], np.int64)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        rows: list[Sequence[Value]] = [tuple(vars(step.values).values()) for step in steps]
        static = None
        if form.static:
            static = form.stays([tuple(vars(stay.static).values()) for stay in request.stays])
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
    eligible = action != NO_ACTION if every_step else np.zeros(len(order), bool)
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

    def model(name: str, **fields: Any) -> Any:  # noqa: ANN401  # a class made of data
        return create_model(name, __base__=_Asked, **fields)

    values = model("Values", **{f"f{k}": _entry(own) for k, own in enumerate(form.sequence)})
    step: dict[str, object] = {"values": (values, ... if form.sequence else values())}
    if earlier_actions:
        why = "What was done at this step; leave it out where that is not known, or not yet."
        step["action"] = (Literal[labels] | None, Field(default=None, description=why))
    order = "Steps in order; the newest comes last."
    limits = Field(min_length=1, max_length=MAX_STEPS, description=order)
    stay: dict[str, object] = {"steps": (list[model("Step", **step)], limits)}  # type: ignore[misc]
    if form.static:
        static = {f"f{k}": _entry(own) for k, own in enumerate(form.static)}
        stay["static"] = (model("Static", **static), ...)
    every = "Answer every step, and not only what to do now."
    request: type[BaseModel] = model(
        "Recommend",
        stays=(list[model("Stay", **stay)], Field(min_length=1, max_length=MAX_STAYS)),  # type: ignore[misc]
        every_step=(bool, Field(default=False, description=every)),
    )
    return request


def _entry(column: Column) -> tuple[object, object]:
    """Type and limits of a field; it goes by the column's name, which may be no name in Python."""
    kind: object = Annotated[float, Field(ge=column.least, le=LARGEST, allow_inf_nan=False)]
    if column.levels:
        kind = Literal[column.levels]
    if column.may_miss:
        return kind | None, Field(None, alias=column.name)  # type: ignore[operator]
    return kind, Field(..., alias=column.name)


def describe_faults(error: ValidationError, known: Collection[str]) -> Refusal:
    """Places and rules of what pydantic found, in words that repeat nothing of it (goal W5).

    Args:
        error: What it found.
        known: Keys that may be repeated, since the description of the service has them.
    """
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    faults = []
    for fault in errors[:_MAX_FAULTS]:
        place = ""
        for part in fault["loc"]:
            if isinstance(part, int):
                place += f"[{part}]"
            elif part in known:
                place += f".{part}"
            elif part not in _BRANCHES and not part.startswith("literal["):
                place += ".?"
        rule = _RULES.get(fault["type"], "is not as the description says")
        faults.append(Fault(place=place.removeprefix(".") or "body", rule=rule))
    more = len(errors) - len(faults)
    detail = "the request is not as the description says"
    return Refusal(detail=f"{detail}; {more} more faults" if more else detail, faults=faults)
