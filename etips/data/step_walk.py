"""Histories step by step, all stays at once, with no more kept of them than where they stand."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from etips.data.decisions import Ints

if TYPE_CHECKING:  # the evaluation makes rows too, and must not reach pyarrow by way of files
    from etips.data.coded import Features, Floats32
    from etips.data.trajectories import Trajectories

Parts = Sequence["Floats32"]


class Step(NamedTuple):
    """The same step of all stays that reach it, the longest history first.

    What is kept of stays from step to step goes by their places in this order: at a later step the
    first places are left.

    Args:
        rows: Of the sequence, one a stay, shape (m,).
        seen: Places among these of the stays that are asked, shape (q,).
        asked: Decisions whose history ends here, shape (q,).
    """

    rows: Ints
    seen: Ints
    asked: Ints


def walk(data: "Trajectories") -> list[Step]:
    """The steps that decisions may see, first to last; nothing after the last that a stay asks."""
    stay = data.decisions().stay
    end = data.seen_rows - data.offsets[stay]
    n_seen = np.zeros(data.n_stays, np.int64)
    np.maximum.at(n_seen, stay, end + 1)
    order = np.argsort(-n_seen, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    starts, longest = data.offsets[:-1][order], int(n_seen.max(initial=0))
    n_left = len(order) - np.cumsum(np.bincount(n_seen, minlength=longest))
    by_end = np.argsort(end, kind="stable")
    bounds = np.searchsorted(end[by_end], np.arange(longest + 1))
    return [
        Step(starts[: n_left[step]] + step, place[stay[asked]], asked)
        for step in range(longest)
        for asked in [by_end[bounds[step] : bounds[step + 1]]]
    ]


def gather(
    steps: Sequence[Step],
    results: Parts,
    *,
    begin: Callable[[Ints], Parts],
    join: Callable[[Parts, Parts], Parts],
    finish: Callable[[Parts], Parts],
) -> None:
    """Write what comes together step by step where decisions ask for it.

    Args:
        steps: Of the stays.
        results: Written to, shape (n_decisions, d) each.
        begin: What some rows of the sequence are by themselves, shape (m, d) each.
        join: What came together before, and this step alone, of the same stays.
        finish: What is asked for, of what came together.
    """
    parts: Parts = ()
    for number, step in enumerate(steps):
        now = begin(step.rows)
        parts = join([part[: len(step.rows)] for part in parts], now) if number else now
        if len(step.asked):
            asked = finish([part[step.seen] for part in parts])
            for result, part in zip(results, asked, strict=True):
                result[step.asked] = part


def mean_of(total: "Floats32", count: "Floats32") -> "Floats32":
    """Mean of values by their sum and number, NaN where there is none."""
    return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)


def side_by_side(n_rows: int, widths: Sequence[int]) -> "tuple[Floats32, list[Floats32]]":
    """An empty table, and its columns in parts of some widths."""
    table = np.empty((n_rows, sum(widths)), np.float32)
    return table, np.split(table, np.cumsum(widths)[:-1], axis=1)


def some_columns(sequence: "Features", places: Sequence[int]) -> "Features":
    """Some columns; of a coded sequence the table's alone are copied, of all of them nothing."""
    if list(places) == list(range(sequence.shape[1])):
        return sequence
    if isinstance(sequence, np.ndarray):
        return np.ascontiguousarray(sequence[:, list(places)])
    return replace(sequence, table=sequence.table[:, list(places)])
