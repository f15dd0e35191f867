"""Rules as policies: a guideline, a protocol, one drug for everybody, written down by hand."""

import difflib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from etips.data.decisions import Bools, Floats, Ints
from etips.data.intake.last_rows import Values, last_values
from etips.data.schema import Schema
from etips.data.tables.arrays import as_trajectories
from etips.data.trajectories import Trajectories
from etips.errors import DataError, EtipsError, SettingError
from etips.policies.deployed import Deployed

ABSTAINS = -1
UNKNOWN = -2
_YES = ("yes", "y", "true", "1", "given", "treated")
_MAX_NAMES = 12  # that a refusal lists
_BLOCK = 10_000  # rows that are dictionaries at the same time


class WrittenRule(ABC):
    """A policy that somebody wrote: it learned from nobody and is sure of what it does."""

    name: str | None

    @property
    @abstractmethod
    def text(self) -> str:
        """What it says, for the record."""

    @abstractmethod
    def ask(self, data: Trajectories) -> ArrayLike:
        """Its answer to every decision, in its own words."""

    def predict_proba(self, data: Trajectories | ArrayLike, **arrays: Any) -> Floats:  # noqa: ANN401
        """1 for the action it takes, shape (n_decisions, n_actions).

        Where it abstains, how often clinicians take each action on the whole.
        """
        return self.deployed(data, **arrays).probabilities

    def predict(self, data: Trajectories | ArrayLike, **arrays: Any) -> Ints:  # noqa: ANN401
        """The action of each decision, shape (n_decisions,); the usual one where it abstains."""
        return np.asarray(self.predict_proba(data, **arrays).argmax(axis=1))

    def abstains(self, data: Trajectories | ArrayLike, **arrays: Any) -> Bools:  # noqa: ANN401
        """Where it leaves the decision to the clinicians, shape (n_decisions,)."""
        return self.deployed(data, **arrays).abstained

    def deployed(self, data: Trajectories | ArrayLike, **arrays: Any) -> Deployed:  # noqa: ANN401
        """What it does at every decision: this is what an evaluation judges."""
        stays = as_trajectories(data, **arrays)
        answers = self.ask(stays)
        if np.ndim(answers) == 1 and len(np.asarray(answers)) != stays.n_decisions:
            raise DataError(self._where, "must give one answer for each decision")
        return what_it_does(read_answers(self._where, answers, stays.schema), stays)

    @property
    def _where(self) -> str:
        return f"rule {self.name}"


@dataclass(frozen=True, eq=False)
class Rule(WrittenRule):
    """A rule in Python.

    `choose` gets what a decision saw last, by the names of the table's own columns: numbers (NaN
    while none is known), text for categories and for yes and no (None). It returns the name or the
    number of an action, true or false where there are two, or None to leave it to the clinicians.

    Args:
        choose: Of one row; of all of them together, an array for each column, if `vectorised`.
        name: What results call it; that of the function if left out.
        vectorised: Whether `choose` takes all decisions at once and returns an array.
    """

    choose: Callable[[Any], Any]
    name: str | None = None
    vectorised: bool = False

    def __post_init__(self) -> None:
        if not callable(self.choose):
            raise SettingError("rule", "must be a function of a row")
        if self.name is None:
            own = getattr(self.choose, "__name__", type(self.choose).__name__)
            object.__setattr__(self, "name", "rule" if own == "<lambda>" else own)

    @property
    def text(self) -> str:
        """What it is: a function has no words of its own."""
        return "a Python function of the last visible row"

    def ask(self, data: Trajectories) -> ArrayLike:
        """Its answer to every decision, in its own words."""
        columns = _Columns(self._where, last_values(data))
        if not self.vectorised:
            return self._one_by_one(columns, data.n_decisions)
        try:
            answers = np.asarray(self.choose(columns))
        except EtipsError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever somebody's function may raise
            raise self._broken(error, range(data.n_decisions), data.n_decisions) from None
        return np.full(data.n_decisions, answers) if answers.ndim == 0 else answers

    def _one_by_one(self, columns: "_Columns", n: int) -> ArrayLike:
        answers = np.empty(n, object)
        failed, last = [], None
        for number, row in enumerate(_rows(columns, n)):
            try:
                answers[number] = self.choose(row)
            except EtipsError:
                raise
            except Exception as error:  # noqa: BLE001
                failed.append(number)
                last = error
        if last is not None:
            raise self._broken(last, failed, n) from None
        return answers

    def _broken(self, error: Exception, rows: Any, n: int) -> DataError:  # noqa: ANN401
        """What an exception says may hold a cell, so its kind alone is told."""
        rule = f"must not fail ({type(error).__name__})"
        fix = "What is not known is NaN in a column of numbers and None in one of text."
        return DataError(self._where, rule, rows=rows, total=n, fix=fix)


class _Columns(dict[str, Values]):
    """Columns, or the cells of a row, by name; any other name is refused with those near it."""

    def __init__(self, where: str, values: Any) -> None:  # noqa: ANN401  # arrays or cells
        super().__init__(values)
        self._where = where

    def __missing__(self, name: object) -> Values:
        raise unknown_column(self._where, str(name), tuple(self))


def _rows(columns: _Columns, n: int) -> Iterator[_Columns]:
    for start in range(0, n, _BLOCK):
        part = [own[start : start + _BLOCK].tolist() for own in columns.values()]
        cells = zip(*part, strict=True) if part else ((),) * min(_BLOCK, n - start)
        for row in cells:
            yield _Columns(columns._where, zip(columns, row, strict=True))


def unknown_column(where: str, name: str, known: tuple[str, ...], *, fix: str = "") -> DataError:
    """The refusal of a column that a rule asks for and no decision sees."""
    fix = fix or f"There is {near_names(name, known)}."
    return DataError(f"{where}, column {name}", "is not among what a decision sees", fix=fix)


def read_answers(where: str, answers: ArrayLike, schema: Schema) -> Ints:
    """The action of each answer, -1 where a rule abstains, shape (n,).

    An answer is the name of an action, its number where names are no numbers themselves, or yes or
    no where there are two actions; None, null and NaN abstain.

    Args:
        where: The rule, for a refusal.
    """
    given = np.asarray(answers)
    if given.ndim != 1:
        raise DataError(where, "must give one action, or None, for each decision")
    values = given.tolist()
    kinds = {_key(value): value for value in values}
    known = {key: read_answer(value, schema) for key, value in kinds.items()}
    actions = np.fromiter((known[_key(value)] for value in values), np.int64, count=given.size)
    unknown = np.flatnonzero(actions == UNKNOWN)
    if not unknown.size:
        return actions
    names = schema.actions
    rule = f"must give an action, 0 to {schema.n_actions - 1}, or null"
    if names:
        more = len(names) - _MAX_NAMES
        listed = ", ".join(f"'{name}'" for name in names[:_MAX_NAMES])
        rule = f"must give one of the actions {listed}{f' and {more} more' * (more > 0)}, or null"
    wrong = [value for key, value in kinds.items() if known[key] == UNKNOWN]
    close = {
        name
        for value in wrong
        if isinstance(value, str)
        for name in difflib.get_close_matches(value, names, n=1)
    }
    # A name that is nearly right; the answer itself may hold a cell, so it is not repeated.
    fix = f"Did you mean '{close.pop()}'?" if len(wrong) == len(close) == 1 else ""
    raise DataError(where, rule, rows=unknown, total=given.size, fix=fix)


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
    shown = close or list(known[:_MAX_NAMES])
    more = "" if close or len(known) <= _MAX_NAMES else f" and {len(known) - _MAX_NAMES} more"
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
