"""What the service answers, as its description says: the models, and how they are filled in."""

import json
from collections.abc import Collection

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from etips.data.decisions import Ints
from etips.results.records import NOTICE
from etips.serve.advice import Advice, Advisor

_DIGITS = 6
_MAX_FAULTS = 20
_BRANCHES = ("float", "constrained-float", "none")
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


def encode_answers(advisor: Advisor, advice: Advice, stay: Ints, step: Ints) -> bytes:
    """A `Recommendation` as JSON.

    Args:
        advisor: The policy that was asked.
        advice: What it answered, n decisions.
        stay: Number of the stay of each, shape (n,).
        step: Number of the step of each, shape (n,).
    """
    chances: list[list[float]] = np.round(advice.probabilities, _DIGITS).tolist()
    theirs: list[list[float]] | None = None
    if advice.clinicians is not None:
        theirs = np.round(advice.clinicians, _DIGITS).tolist()
    supported, parts = advice.supported.tolist(), advisor.parts_by_action()
    decisions = []
    for n, action in enumerate(advice.advised.tolist()):
        silent = bool(advice.abstained[n])
        decisions.append(
            {
                "stay": int(stay[n]),
                "step": int(step[n]),
                "abstained": silent,
                "recommended": None if silent else advisor.labels[action],
                "number": None if silent else action,
                "parts": None if silent else parts[action],
                "support": None if silent or theirs is None else theirs[n][action],
                "probabilities": chances[n],
                "clinicians": None if theirs is None else theirs[n],
                "supported": supported[n],
            }
        )
    document = {
        "notice": NOTICE,
        "actions": advisor.labels,
        "acts": advisor.policy.acts,
        "least_support": advice.support,
        "decisions": decisions,
    }
    return json.dumps(document, separators=(",", ":"), allow_nan=False).encode()


def describe_faults(error: ValidationError, known: Collection[str]) -> Refusal:
    """Places and rules of what pydantic found, in words that repeat nothing of it (goal W5).

    Args:
        error: What it found.
        known: Keys that may be repeated, since the description of the service has them.
    """
    found = error.errors(include_url=False, include_context=False, include_input=False)
    faults = [
        Fault(
            place=_place(own["loc"], known),
            rule=_RULES.get(own["type"], "is not as the description says"),
        )
        for own in found[:_MAX_FAULTS]
    ]
    more = len(found) - len(faults)
    detail = "the request is not as the description says"
    return Refusal(detail=f"{detail}; {more} more faults" if more else detail, faults=faults)


def _place(location: tuple[int | str, ...], known: Collection[str]) -> str:
    """Where a fault is; an unknown key is a question mark, and branches of a union are left out."""
    parts = []
    for own in location:
        if isinstance(own, int):
            parts.append(f"[{own}]")
        elif own in known:
            parts.append(own)
        elif own not in _BRANCHES and not own.startswith("literal["):
            parts.append("?")
    return ".".join(part for part in parts if part).replace(".[", "[") or "body"
