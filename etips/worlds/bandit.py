"""Supervised data turned into a log: a policy answers, and only its answer's loss is kept."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np

from etips.data.coded import Truth
from etips.data.decisions import NO_ACTION, Floats, Ints
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError, require
from etips.worlds.draws import Chances, generator

Logging = Literal["sampled", "argmax"]
"""How an action is taken: drawn from the policy (the paper), or its likeliest (the authors)."""

_ACTIONS = 2  # stream of random numbers

Numbers = TypeVar("Numbers", Ints, Floats)


@dataclass(frozen=True, eq=False)
class Answers:
    """What a classifier says of every decision.

    Args:
        probabilities: Probability of each label, shape (n_decisions, n_actions).
        notes: How it was trained, for the provenance.
    """

    probabilities: Floats
    notes: Mapping[str, str]


Classify = Callable[..., Answers]
"""Learns from labelled `Trajectories`, in which `action` is the true label, and answers all of it.

It is called with them, `seed` and `progress`.
"""


def to_bandit(
    labelled: Trajectories, answers: Answers, *, logging: Logging, seed: int
) -> Trajectories:
    """The log a policy would have left on `labelled`; the loss is 1 where its action is wrong.

    Under "argmax" every other action had no chance, so `propensity` is not one in truth. It is what
    the authors' code records, kept to compare with their table.

    Args:
        labelled: Its `action` is the true label.
        answers: The policy.
        logging: Draw the action, or take the likeliest.
        seed: Same seed, same actions.
    """
    label, probabilities = labelled.logged_action, answers.probabilities
    n, n_actions = probabilities.shape
    if label.shape != (n,):
        raise DataError("label", f"must have shape {(n,)}, one a row of probabilities")
    sound = (probabilities >= 0).all(axis=1) & (np.abs(probabilities.sum(axis=1) - 1) < 1e-4)
    require("probabilities", "rows must be probabilities that sum to 1", sound)
    each = np.arange(n)
    if logging == "sampled":
        true_logging = probabilities / probabilities.sum(axis=1, keepdims=True)
        action = Chances.of(true_logging).draw(each, generator(seed, _ACTIONS))
    elif logging == "argmax":
        action = probabilities.argmax(axis=1)
        true_logging = np.eye(n_actions)[action]
    else:
        raise SettingError("logging", "must be 'sampled' or 'argmax'")
    wrong = (np.arange(n_actions) != label[:, None]).astype(np.float64)
    loss, rows = wrong[each, action], labelled.decision_rows
    code = np.zeros(labelled.n_steps, np.int32)  # any row of the tables where there is no decision
    code[rows] = each

    def at_decisions(values: Numbers, elsewhere: float) -> Numbers:
        filled = np.full(labelled.n_steps, elsewhere, values.dtype)
        filled[rows] = values
        return filled

    notes = {
        **labelled.schema.provenance,
        **answers.notes,
        "logging": logging,
        "seed": str(seed),
        "logged_action_accuracy": f"{1 - loss.mean():.4f}",
    }
    return replace(
        labelled,
        action=at_decisions(action, NO_ACTION),
        loss=at_decisions(loss, np.nan),
        propensity=at_decisions(probabilities[each, action], np.nan),
        truth=Truth(code, wrong, true_logging),
        schema=replace(labelled.schema, provenance=notes),
    )
