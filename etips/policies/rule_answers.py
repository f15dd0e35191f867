"""Answers of a rule, in the words of the log, turned into what it does at every decision."""

import difflib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from etips.data.decisions import Bools, Floats, Ints
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.errors import DataError
from etips.policies.deployed import Deployed

ABSTAINS = -1
UNKNOWN = -2
_YES = ("yes", "y", "true", "1", "given", "treated")
_MOST_NAMES = 12


def read_answers(where: str, answers: ArrayLike, schema: Schema) -> Ints:
    """The action of each answer, -1 where a rule abstains, shape (n,).

    An answer is the name of an action, its number where names are no numbers themselves, or yes or
    no where there are two actions; None, null and NaN abstain.

    Args:
        where: The rule, for a refusal.
        answers: One a decision.
        schema: Whose actions they are.
    """
    given = np.asarray(answers)
    if given.ndim != 1:
        raise DataError(where, "must give one action, or None, for each decision")
    values = given.tolist()
    kinds = {_key(value): value for value in values}
    known = {key: read_answer(value, schema) for key, value in kinds.items()}
    actions = np.fromiter((known[_key(value)] for value in values), np.int64, count=given.size)
    unknown = np.flatnonzero(actions == UNKNOWN)
    if unknown.size:
        told = [value for key, value in kinds.items() if known[key] == UNKNOWN]
        raise DataError(
            where, _rule(schema), rows=unknown, total=given.size, fix=_near(told, schema)
        )
    return actions


def read_answer(value: object, schema: Schema) -> int:
    """The action that an answer names, `ABSTAINS` or `UNKNOWN`."""
    names = schema.actions
    if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
        return ABSTAINS
    if isinstance(value, bool | np.bool_):
        return _yes_or_no(bool(value), schema)
    if isinstance(value, int | float | np.integer | np.floating):
        return _numbered(float(value), schema)
    if not isinstance(value, str):
        return UNKNOWN
    by_name = {_tidy(name): number for number, name in enumerate(names)}
    if value in names:
        return names.index(value)
    if _tidy(value) in by_name:
        return by_name[_tidy(value)]
    try:
        return _numbered(float(value), schema)
    except ValueError:
        return UNKNOWN


def what_it_does(actions: Ints, data: Trajectories) -> Deployed:
    """One sure action at every decision; where it abstains, what clinicians do on the whole.

    Args:
        actions: -1 where the rule abstains, shape (n_decisions,).
        data: The stays.
    """
    silent: Bools = actions == ABSTAINS
    shares: Floats = np.full(data.n_actions, 1 / data.n_actions)
    if data.logged and data.n_decisions:
        shares = np.bincount(data.logged_action, minlength=data.n_actions) / data.n_decisions
    table = np.eye(data.n_actions)[np.where(silent, 0, actions)]
    return Deployed(np.where(silent[:, None], shares, table), silent)


def near_names(asked: str, known: Sequence[str]) -> str:
    """Those of the names that look like the one asked for, else all of them if they are few."""
    folded: Mapping[str, str] = {name.lower(): name for name in known}
    close = [folded[name] for name in difflib.get_close_matches(asked.lower(), folded, n=3)]
    shown = close or list(known[:_MOST_NAMES])
    more = "" if close or len(known) <= _MOST_NAMES else f" and {len(known) - _MOST_NAMES} more"
    return ", ".join(shown) + more


def _key(value: object) -> object:
    """Tells True from 1 and takes NaN for None, and what has no hash for one kind of nonsense."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return None
    scalar = isinstance(value, str | bool | int | float | np.generic)
    return (type(value).__name__, value) if scalar else "something else"


def _tidy(name: str) -> str:
    """A combination may be written with or without spaces after its commas."""
    return ",".join(part.strip() for part in name.split(","))


def _numbered(value: float, schema: Schema) -> int:
    """By the name that is this number, where names are numbers; else by the action's number."""
    numbers = [_number(name) for name in schema.actions]
    if numbers and None not in numbers:
        return numbers.index(value) if value in numbers else UNKNOWN
    whole = value == np.floor(value) and 0 <= value < schema.n_actions
    return int(value) if whole else UNKNOWN


def _number(name: str) -> float | None:
    try:
        return float(name)
    except ValueError:
        return None


def _yes_or_no(value: bool, schema: Schema) -> int:
    """The second of two actions is yes, unless the first is called so."""
    if schema.n_actions != 2:
        return UNKNOWN
    turned = bool(schema.actions) and schema.actions[0].strip().lower() in _YES
    return int(value != turned)


def _rule(schema: Schema) -> str:
    if not schema.actions:
        return f"must give an action, 0 to {schema.n_actions - 1}, or null"
    more = len(schema.actions) - _MOST_NAMES
    names = ", ".join(f"'{name}'" for name in schema.actions[:_MOST_NAMES])
    return f"must give one of the actions {names}{f' and {more} more' if more > 0 else ''}, or null"


def _near(told: Sequence[object], schema: Schema) -> str:
    """A name that is nearly right; an answer may hold a cell, so it is not repeated."""
    close: set[str] = set()
    for value in told:
        if isinstance(value, str):
            close |= set(difflib.get_close_matches(value, schema.actions, n=1))
    if len(told) == 1 and len(close) == 1:
        return f"Did you mean '{close.pop()}'?"
    return ""
