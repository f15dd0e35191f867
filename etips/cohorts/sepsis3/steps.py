"""Timestamps to steps of equal length (docs/cohort/rules.md section 12)."""

from dataclasses import dataclass

import numpy as np

from etips.cohorts.sepsis3.grid import INDEX, Bools, Floats, Grid, Ints
from etips.cohorts.sepsis3.rules import Rules
from etips.cohorts.sepsis3.variables import CHARTED


@dataclass(frozen=True)
class Steps:
    """The steps that exist, sorted by stay and number.

    Attributes:
        stays: Id of each stay with at least one step, sorted, shape (s,).
        beg: Left edge of step 0 of each stay in seconds, shape (s,).
        last: Last timestamp of each stay in the window in seconds, shape (s,).
        owner: Which stay each step belongs to, as a position in `stays`, shape (k,).
        number: 0 .. `rules.most_steps` - 1, gaps included, shape (k,).
        means: Mean of each charted column over the rows of the step, shape (65, k).
        rules: How many steps a stay may have, how long they are, whether they exclude their right
            edge.
    """

    stays: Ints
    beg: Ints
    last: Ints
    owner: Ints
    number: Ints
    means: Floats
    rules: Rules

    @property
    def t0(self) -> Ints:
        """Left edge of each step in seconds."""
        return self.beg[self.owner] + self.rules.step_seconds * self.number

    def find(self, owner: Ints, number: Ints) -> tuple[Ints, Bools]:
        """Position of given steps, and whether they exist."""
        most = self.rules.most_steps
        return _find(self.owner * most + self.number, owner * most + number)


def _find(existing: Ints, key: Ints) -> tuple[Ints, Bools]:
    """Position of keys among the existing ones, which rise, and whether they are there."""
    if not existing.size:
        return np.zeros(key.shape, np.int64), np.zeros(key.shape, bool)
    position = np.searchsorted(existing, key).clip(max=existing.size - 1)
    return position, existing[position] == key


def steps_of(offset: Ints, rules: Rules) -> tuple[Ints, Ints]:
    """Which steps each moment belongs to: (index of the moment, number of the step).

    With closed steps a moment on an inner edge belongs to two (oddity 5).
    """
    number, rest = np.divmod(offset, rules.step_seconds)
    inside = np.flatnonzero((number >= 0) & (number < rules.most_steps))
    if rules.half_open_steps:
        return inside, number[inside]
    edge = np.flatnonzero((rest == 0) & (number >= 1) & (number <= rules.most_steps))
    return np.concatenate([inside, edge]), np.concatenate([number[inside], number[edge] - 1])


def make_steps(
    grid: Grid, rules: Rules, *, anchor: Ints | None = None, opening: Bools | None = None
) -> Steps:
    """Average the rows of a grid over the steps of its stays.

    Args:
        grid: Held values.
        rules: Number, length and kind of steps.
        anchor: Left edge of step 0 for each row's stay, shape (n,); its first row if left out.
        opening: Which rows may open a step, shape (n,); all if left out.
    """
    beg = grid.t[grid.first] if anchor is None else anchor
    row, number = steps_of(grid.t - beg, rules)
    stays, owner_of_row = np.unique(grid.stay, return_inverse=True)
    key = owner_of_row[row] * rules.most_steps + number
    existing = np.unique(key if opening is None else key[opening[row]])
    step, exists = _find(existing, key)
    row, step = row[exists], step[exists]
    means = np.full((len(CHARTED), existing.size), np.nan)
    for name in CHARTED:
        value = grid[name][row]
        known = ~np.isnan(value)
        # bincount adds one row after the other; another order could move a mean across a limit of
        # the scores by its last bit
        total = np.bincount(step[known], value[known], minlength=existing.size)
        count = np.bincount(step[known], minlength=existing.size)
        np.divide(total, count, out=means[INDEX[name]], where=count > 0)
    used, owner = np.unique(existing // rules.most_steps, return_inverse=True)
    last_row = np.append(np.flatnonzero(np.diff(grid.stay)), grid.stay.size - 1)[: stays.size][used]
    return Steps(
        stays=stays[used],
        beg=beg[last_row],
        last=grid.t[last_row],
        owner=owner.astype(np.int64),
        number=existing % rules.most_steps,
        means=means,
        rules=rules,
    )
