"""The rule of few: no count of 1 to 10 people is shown, nor can it be worked out (goal P2).

Whoever reads a table also adds and subtracts: cells from totals, one attrition step from the next,
shares times totals. So hiding the small cells alone is not enough. Empty cells are shown. Every
table that is printed or written passes through here: a count by itself by `shown_count`, counts
with a known sum by `shown_parts`, a flow by `shown_flow` or `hide_steps`, a table by
`hide_together`, counts of the same people that stand in several places by `shown_apart`, and the
counts of a cohort, wherever they are told, by `shown_funnel`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

Number = TypeVar("Number", int, float)

LEAST_PEOPLE = 11
"""Fewest people that a shown count may stand for; none at all may be shown too."""

FEW = f"under {LEAST_PEOPLE}"
"""What is printed in place of a count that must not be shown."""


def are_few(count: float) -> bool:
    """Whether a count of people, or what may be near one, must not be shown."""
    return 0 < count < LEAST_PEOPLE


def is_small(counts: ArrayLike) -> Bools:
    """Where a count is from 1 to 10, shape as given."""
    n = np.asarray(counts)
    return np.asarray((n > 0) & (n < LEAST_PEOPLE))


def any_few(counts: Iterable[float]) -> bool:
    """Whether one of counts that add up to a known number is few; the others then tell it."""
    return any(are_few(count) for count in counts)


def rounds_to_few(size: float) -> bool:
    """Whether an effective size is under 11 when printed whole; what is not a number counts too."""
    return not size > LEAST_PEOPLE - 0.5


def shown_count(count: Number) -> Number | None:
    """A count by itself, or an effective size: with equal weights it is one. None if few."""
    return None if are_few(count) else count


def shown_parts(*counts: int) -> tuple[int | None, ...]:
    """Counts that add up to a known number: all of them, or none if one is few."""
    return (None,) * len(counts) if any_few(counts) else counts


def shown_or_few(count: int) -> str:
    """A count by itself as it is printed."""
    return FEW if are_few(count) else f"{count:,}"


def part_told(n: int, of: int, what: str) -> str:
    """How many of `of` in words, unless they or those left are few."""
    return f"some of the {what}" if any_few((n, of - n)) else f"{n:,} of the {of:,} {what}"


def shown_flow(counts: Sequence[int | None], *, known: Sequence[int] = ()) -> list[int | None]:
    """The steps of a flow by the rule of `hide_steps`, None where hidden."""
    return [
        None if unseen else count
        for count, unseen in zip(counts, hide_steps(counts, known=known), strict=True)
    ]


def tells_few(count: float, known: Iterable[float]) -> bool:
    """Whether a count is few, or its difference from one that is known."""
    return any_few((count, *(abs(count - other) for other in known)))


def shown_apart(counts: Sequence[int | None], *, known: Iterable[int] = ()) -> list[int | None]:
    """Counts of the same people in several units or places; None where one would tell of a few.

    The most important comes first: a later one that gives a few away is the one to hide. None is
    hidden already; `known` counts are shown elsewhere.
    """
    seen = list(known)
    shown: list[int | None] = []
    for count in counts:
        told = None if count is None or tells_few(count, seen) else count
        shown.append(told)
        seen += [] if told is None else [told]
    return shown


@dataclass(frozen=True)
class ShownFunnel:
    """What may be told of a cohort, on the terminal, in a drawing and in a report alike.

    Args:
        stages: Stays left after each step.
        rows: Rows of its table.
        samples: Decisions, by reading.
    """

    stages: tuple[int | None, ...]
    rows: int | None
    samples: tuple[int | None, ...]

    @property
    def counts(self) -> list[int]:
        """All that is shown."""
        return [count for count in (*self.stages, self.rows, *self.samples) if count is not None]


def shown_funnel(
    stages: Sequence[int | None], rows: int | None, samples: Sequence[int | None]
) -> ShownFunnel:
    """What may be told of a cohort: no two counts that are shown differ by 1 to 10.

    The same counts give the same answer, so that no two places tell together what each hides.
    """
    kept = shown_flow(stages)
    known = [count for count in kept if count is not None]
    n_rows, *decisions = shown_apart((rows, *samples), known=known)
    return ShownFunnel(tuple(kept), n_rows, tuple(decisions))


def hide_together(*counts: ArrayLike, also: ArrayLike = False) -> Bools:
    """Which rows of a table with known totals are hidden, shape (rows,).

    A row is hidden when any of its counts is small. Then the smallest other row is hidden too, lest
    several small counts be pinned by their sum, and more of them until what totals minus the shown
    rows leave has room of ten or more for each hidden count.

    Args:
        counts: The columns of the table, people first, shape (rows,) each.
        also: Rows to be hidden for another reason, shape (rows,).
    """

    def gives_away() -> bool:
        """Whether totals minus what is shown pin a hidden count; hidden rows are people."""
        room = columns[0][hidden].sum() - hidden.sum()
        small = any(is_small(column[hidden].sum()) for column in columns[1:])
        return bool(room < LEAST_PEOPLE - 1 or small)

    columns = [np.asarray(column) for column in counts]
    hidden = np.any([is_small(column) for column in columns], axis=0) | np.asarray(also)
    if not hidden.any():
        return np.asarray(hidden)
    order = np.argsort(columns[0], kind="stable")
    spare = [row for row in order if columns[0][row] > 0 and not hidden[row]]
    for number, row in enumerate(spare):
        if number and not gives_away():
            break
        hidden[row] = True
    if hidden[columns[0] > 0].all():
        hidden[:] = True  # nor does anybody need to know which rows are empty then
    return np.asarray(hidden)


def hide_steps(counts: Sequence[int | None], *, known: Sequence[int] = ()) -> Bools:
    """Which steps of a flow are hidden, shape (steps,): who is left out counts too.

    A step is shown if it is not small and differs from every other count that is shown, here or
    elsewhere (`known`), by nothing or by more than 10. The last step is looked at first, since it
    is what the rest is about. None is hidden already.
    """
    shown = list(known)
    hidden = np.ones(len(counts), bool)
    last = len(counts) - 1
    for place in sorted(range(len(counts)), key=lambda place: (place != last, place)):
        count = counts[place]
        if count is None or is_small(count):
            continue
        if not is_small(np.abs(np.array(shown, np.int64) - count)).any():
            hidden[place] = False
            shown.append(count)
    return hidden
