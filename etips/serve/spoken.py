"""What the service answers: the models of its description, and answers as JSON."""

import json
from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict
from pydantic import Field as Told

from etips.data.decisions import Floats, Ints
from etips.results.exhibits import NOTICE
from etips.serve.advice import Advice, Advisor

_EXACT = ConfigDict(extra="forbid")
_DIGITS = 6


class Decision(BaseModel):
    """What to do at one step."""

    model_config = _EXACT
    stay: int = Told(description="Number of the stay in the request, from 0.")
    step: int = Told(description="Number of the step within its stay, from 0.")
    abstained: bool = Told(
        description="No action has enough support among clinicians: wait, there is no advice."
    )
    recommended: str | None = Told(description="The likeliest action; null where it abstains.")
    number: int | None = Told(description="The same by its number.")
    parts: dict[str, str] | None = Told(
        description="What the action is made of, where it combines several; null otherwise."
    )
    support: float | None = Told(
        description="How often clinicians take that action with such patients; null if not known."
    )
    probabilities: list[float] = Told(
        description="Of each action under the policy; where it abstains, under the clinicians."
    )
    clinicians: list[float] | None = Told(description="Of each action under the clinicians.")
    supported: list[bool] = Told(description="Which actions have enough support.")


class Recommendation(BaseModel):
    """Answers, in the order of the request."""

    model_config = _EXACT
    notice: str
    actions: list[str] = Told(description="What the actions are called, by number.")
    acts: str = Told(
        description="`likeliest`, or `draws`: what was evaluated draws by the probabilities."
    )
    least_support: float
    decisions: list[Decision]


class Fault(BaseModel):
    """What is wrong with a request."""

    model_config = _EXACT
    place: str
    rule: str


class Refusal(BaseModel):
    """A request that was not answered."""

    model_config = _EXACT
    detail: str
    faults: list[Fault] = Told(default_factory=list)


class Health(BaseModel):
    """Whether the service answers."""

    model_config = _EXACT
    status: str
    version: str


def encode_answers(advisor: Advisor, advice: Advice, stay: Ints, step: Ints) -> bytes:
    """Answers as JSON, in the shape of `Recommendation`.

    Args:
        advisor: Who was asked.
        advice: What was said, n decisions.
        stay: Number of the stay of each, shape (n,).
        step: Number of the step of each, shape (n,).
    """
    chances = _rounded(advice.probabilities)
    theirs = None if advice.clinicians is None else _rounded(advice.clinicians)
    supported = advice.supported.tolist()
    parts = _parts(advisor)
    decisions = []
    for n, (action, silent) in enumerate(
        zip(advice.advised.tolist(), advice.abstained.tolist(), strict=True)
    ):
        decisions.append(
            {
                "stay": int(stay[n]),
                "step": int(step[n]),
                "abstained": silent,
                "recommended": None if silent else advisor.labels[action],
                "number": None if silent else action,
                "parts": None if silent or parts is None else parts[action],
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


def _parts(advisor: Advisor) -> Sequence[dict[str, str]] | None:
    """What each action is made of."""
    if not advisor.parts:
        return None
    return [
        {part.name: part.levels[part.of_action[n]] for part in advisor.parts}
        for n in range(advisor.schema.n_actions)
    ]


def _rounded(values: Floats) -> list[list[float]]:
    rows: list[list[float]] = np.round(values, _DIGITS).tolist()
    return rows
