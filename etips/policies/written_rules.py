"""Rules as policies: a guideline, a protocol, one drug for everybody, written down by hand."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from etips.data.decisions import Bools, Floats, Ints
from etips.data.intake.last_rows import Values, last_values
from etips.data.tables.arrays import as_trajectories
from etips.data.trajectories import Trajectories
from etips.errors import DataError, EtipsError, SettingError
from etips.policies.deployed import Deployed
from etips.policies.rule_answers import near_names, read_answers, what_it_does

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
