"""Supervised data turned into a log: a policy answers, and only its answer's loss is kept."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeVar

import numpy as np

from etips.data.coded import Truth
from etips.data.decisions import NO_ACTION, Floats, Ints
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError, require
from etips.progress import Progress
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


class Classify(Protocol):
    """Anything that learns from labelled data, in which `action` is the true label, and answers."""

    def __call__(self, labelled: Trajectories, *, seed: int, progress: Progress) -> Answers:
        """Train on part of `labelled` and answer all of it."""


@dataclass(frozen=True, eq=False)
class Feedback:
    """The log of a policy on labelled decisions, one entry a decision.

    `logging` is what the actions truly came from, one-hot under arg-max; `propensity` is the
    policy's probability of the action either way.
    """

    action: Ints
    loss: Floats
    propensity: Floats
    expected_loss: Floats
    logging: Floats


def answer(probabilities: Floats, label: Ints, *, logging: Logging, seed: int) -> Feedback:
    """Let a policy act; the loss is 1 where the action is not the label.

    Under "argmax" every other action had no chance, so `propensity` is not one in truth. It is what
    the authors' code records, kept to compare with their table.

    Args:
        probabilities: The policy, shape (n, n_actions).
        label: The right action, shape (n,).
        logging: Draw the action, or take the likeliest.
        seed: Same seed, same actions.
    """
    n, n_actions = probabilities.shape
    if label.shape != (n,):
        raise DataError("label", f"must have shape {(n,)}, one a row of probabilities")
    sound = (probabilities >= 0).all(axis=1) & (np.abs(probabilities.sum(axis=1) - 1) < 1e-4)
    require("probabilities", "rows must be probabilities that sum to 1", sound)
    rows = np.arange(n)
    if logging == "sampled":
        true_logging = probabilities / probabilities.sum(axis=1, keepdims=True)
        action = Chances.of(true_logging).draw(rows, generator(seed, _ACTIONS))
    elif logging == "argmax":
        action = probabilities.argmax(axis=1)
        true_logging = np.eye(n_actions)[action]
    else:
        raise SettingError("logging", "must be 'sampled' or 'argmax'")
    wrong = (np.arange(n_actions) != label[:, None]).astype(np.float64)
    return Feedback(action, wrong[rows, action], probabilities[rows, action], wrong, true_logging)


def to_bandit(
    labelled: Trajectories, answers: Answers, *, logging: Logging, seed: int
) -> Trajectories:
    """The log a policy would have left on `labelled`, in which `action` is the true label."""
    feedback = answer(answers.probabilities, labelled.logged_action, logging=logging, seed=seed)
    rows = labelled.decision_rows
    code = np.zeros(labelled.n_steps, np.int32)  # any row of the tables where there is no decision
    code[rows] = np.arange(rows.size)
    notes = {
        **labelled.schema.provenance,
        **answers.notes,
        "logging": logging,
        "seed": str(seed),
        "logged_action_accuracy": f"{1 - feedback.loss.mean():.4f}",
    }
    return replace(
        labelled,
        action=_at(rows, feedback.action, labelled.n_steps, NO_ACTION),
        loss=_at(rows, feedback.loss, labelled.n_steps, np.nan),
        propensity=_at(rows, feedback.propensity, labelled.n_steps, np.nan),
        truth=Truth(code, feedback.expected_loss, feedback.logging),
        schema=replace(labelled.schema, provenance=notes),
    )


def _at(rows: Ints, values: Numbers, size: int, elsewhere: float) -> Numbers:
    filled = np.full(size, elsewhere, values.dtype)
    filled[rows] = values
    return filled
