"""How the columns of a table were read: learned once, kept in the schema, applied again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Self

from etips.data.intake.dose_classes import DoseClasses
from etips.data.intake.recipe_json import from_document, to_document

Kind = Literal["number", "category", "yes_no", "hours", "years", "age", "duration"]
"""What a feature column holds. `hours`: times as hours since the stay's first row; `years`: times
as years since 2000; `age`: dates of birth as years; `duration`: lengths of time as hours."""

Combine = Literal["last", "first", "mean", "sum", "min", "max"]
"""What becomes of several values of one step."""

Missing = Literal["refuse", "carry"]
"""A missing feature value: refuse the table, or carry the last one forward and mark it."""


@dataclass(frozen=True)
class ColumnKind:
    """How a feature column is read.

    Args:
        kind: What it holds.
        levels: Levels of a category, in the order of their columns; the two words of yes and no,
            the one that counts 0 first; none for booleans.
        at: Column of the date that an age is counted to; None: the time of the stay's first row.
    """

    kind: Kind = "number"
    levels: tuple[str, ...] = ()
    at: str | None = None


@dataclass(frozen=True)
class StepRule:
    """Steps of equal length, counted from each stay's first row.

    Args:
        every: Length of a step as it was asked for, "4h".
        length: The same in seconds; in units of the step column where that holds numbers.
        clock: Whether the step column holds times.
        combine: What becomes of several values of one step, by column; others keep the last.
    """

    every: str
    length: float
    clock: bool = True
    combine: Mapping[str, Combine] = field(default_factory=dict)


@dataclass(frozen=True)
class ActionReading:
    """What the table calls each action.

    Args:
        columns: Columns of the action; more than one, and an action is a combination.
        labels: By action number, what stands in each of the columns (text as it is, a code as its
            digits).
    """

    columns: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Outcome:
    """Where the loss comes from.

    Args:
        kind: Whether the column holds a loss or a reward.
        rule: How a loss is made of it: as it is, minus it, or one minus it.
        words: What was read as 1, where the column holds words or codes.
        others: What was read as 0 there.
    """

    kind: Literal["loss", "reward"] = "loss"
    rule: Literal["as_it_is", "minus", "one_minus"] = "as_it_is"
    words: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recipe:
    """How a table was read, so that the next one is read in the same way.

    Args:
        kinds: Kind of each feature column of the table, by its name there.
        numbered: Roles that no column plays ("stay", "step"): rows are numbered instead.
        missing: What becomes of missing feature values.
        elapsed: Name of the feature that holds the time since the row before, or None.
        action: Labels of the actions, where they are not 0..K-1 as they stand.
        doses: Classes of each column of doses.
        outcome: Where the loss comes from.
        every: Length of a step, where rows were put into steps.
    """

    kinds: Mapping[str, ColumnKind] = field(default_factory=dict)
    numbered: tuple[str, ...] = ()
    missing: Missing = "carry"
    elapsed: str | None = None
    action: ActionReading | None = None
    doses: tuple[DoseClasses, ...] = ()
    outcome: Outcome = field(default_factory=Outcome)
    every: StepRule | None = None

    def to_json(self) -> object:
        """A JSON-ready copy."""
        return to_document(self)

    @classmethod
    def from_json(cls, document: object) -> Self:
        """Rebuild a recipe; anything unexpected raises `SettingError`, never a traceback."""
        return from_document(cls, document, where="schema, recipe")
