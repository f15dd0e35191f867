"""Timestamps to steps of equal length (docs/cohort/rules.md section 12)."""

from dataclasses import dataclass

import numpy as np

from etips.cohorts.sepsis3.grid import INDEX, Bools, Floats, Grid, Ints
from etips.cohorts.sepsis3.rules import Rules
from etips.cohorts.sepsis3.variables import CHARTED, STEP_SECONDS


@dataclass(frozen=True)
class Steps:
    """The steps that exist, sorted by stay and number.

    Attributes:
        stays: Id of each stay with at least one step, sorted, shape (s,).
        beg: Left edge of step 0 of each stay in seconds, shape (s,).
        last: Last timestamp of each stay in the window in seconds, shape (s,).
        owner: Which stay each step belongs to, as a position in `stays`, shape (k,).
        number: 0 .. n_steps - 1, gaps included, shape (k,).
        means: Mean of each charted column over the rows of the step, shape (65, k).
        n_steps: How many steps a stay may have.
        half_open: Whether a step excludes its right edge.
        seconds: Length of a step.
    """

    stays: Ints
    beg: Ints
    last: Ints
    owner: Ints
    number: Ints
    means: Floats
    n_steps: int
    half_open: bool
    seconds: int = STEP_SECONDS

    @property
    def key(self) -> Ints:
        """One increasing number per step."""
        return self.owner * self.n_steps + self.number

    @property
    def t0(self) -> Ints:
        """Left edge of each step in seconds."""
        return self.beg[self.owner] + self.seconds * self.number

    def find(self, owner: Ints, number: Ints) -> tuple[Ints, Bools]:
        """Position of given steps, and whether they exist."""
        key = owner * self.n_steps + number
        position = np.searchsorted(self.key, key).clip(max=max(self.key.size - 1, 0))
        exists = self.key[position] == key if self.key.size else np.zeros(key.shape, bool)
        return position, exists


def steps_of(
    offset: Ints, *, n_steps: int, half_open: bool, seconds: int = STEP_SECONDS
) -> tuple[Ints, Ints]:
    """Which steps each moment belongs to: (index of the moment, number of the step).

    With closed steps a moment on an inner edge belongs to two (oddity 5).

    Args:
        offset: Seconds since the left edge of step 0, shape (n,).
        n_steps: Steps are numbered 0 .. n_steps - 1.
        half_open: Whether a step excludes its right edge.
        seconds: Length of a step.
    """
    number, rest = np.divmod(offset, seconds)
    inside = np.flatnonzero((number >= 0) & (number < n_steps))
    if half_open:
        return inside, number[inside]
    edge = np.flatnonzero((rest == 0) & (number >= 1) & (number <= n_steps))
    return np.concatenate([inside, edge]), np.concatenate([number[inside], number[edge] - 1])


def make_steps(
    grid: Grid, rules: Rules, *, anchor: Ints | None = None, opening: Bools | None = None
) -> Steps:
    """Average the rows of a grid over the steps of its stays.

    Args:
        grid: Held values.
        rules: Number and kind of steps.
        anchor: Left edge of step 0 for each row's stay, shape (n,); its first row if left out.
        opening: Which rows may open a step, shape (n,); all if left out.
    """
    beg = grid.t[grid.first] if anchor is None else anchor
    most, seconds = rules.most_steps, rules.step_seconds
    row, number = steps_of(
        grid.t - beg, n_steps=most, half_open=rules.half_open_steps, seconds=seconds
    )
    stays, owner_of_row = np.unique(grid.stay, return_inverse=True)
    key = owner_of_row[row] * most + number
    opens = slice(None) if opening is None else opening[row]
    existing = np.unique(key[opens])
    where = np.searchsorted(existing, key).clip(max=max(existing.size - 1, 0))
    kept = existing[where] == key if existing.size else np.zeros(key.shape, bool)
    means = _means(grid, row[kept], where[kept], existing.size)
    last_row = np.append(np.flatnonzero(np.diff(grid.stay)), grid.stay.size - 1)[: stays.size]
    return _without_empty_stays(
        Steps(
            stays=stays,
            beg=beg[last_row],
            last=grid.t[last_row],
            owner=existing // most,
            number=existing % most,
            means=means,
            n_steps=most,
            half_open=rules.half_open_steps,
            seconds=seconds,
        )
    )


def _means(grid: Grid, row: Ints, step: Ints, n_steps: int) -> Floats:
    """Mean over the rows of each step, ignoring NaN.

    `bincount` adds one row after the other; another order could move a mean across a limit of the
    scores by its last bit.
    """
    means = np.full((len(CHARTED), n_steps), np.nan)
    for name in CHARTED:
        value = grid[name][row]
        known = ~np.isnan(value)
        total = np.bincount(step[known], value[known], minlength=n_steps)
        count = np.bincount(step[known], minlength=n_steps)
        np.divide(total, count, out=means[INDEX[name]], where=count > 0)
    return means


def _without_empty_stays(steps: Steps) -> Steps:
    used, owner = np.unique(steps.owner, return_inverse=True)
    return Steps(
        stays=steps.stays[used],
        beg=steps.beg[used],
        last=steps.last[used],
        owner=owner.astype(np.int64),
        number=steps.number,
        means=steps.means,
        n_steps=steps.n_steps,
        half_open=steps.half_open,
        seconds=steps.seconds,
    )
