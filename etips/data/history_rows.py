"""Histories as rows of one width, for models that know no time."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from etips.data.decisions import NO_ACTION, Floats, Ints
from etips.data.step_walk import Parts, gather, mean_of, some_columns, walk

if TYPE_CHECKING:  # the evaluation makes rows too, and must not reach pyarrow by way of files
    from etips.data.coded import Features, Floats32
    from etips.data.trajectories import Trajectories

Summary = Callable[["Trajectories"], NDArray[np.float32]]
"""Turns stays into one row a decision."""

MOST_ACTIONS = 30
"""Up to so many actions the one before is a column each; beyond, one column with its number."""

MOST_FEATURES = 128
"""Of wider steps (images, say) as many columns are kept, those that vary most."""

MOST_NUMBERS = 100_000_000
"""A table of more numbers (400 MB) leaves out summaries of the history, the least telling first."""


class Classifier(Protocol):
    """A classifier of scikit-learn's kind."""

    def fit(self, X: NDArray[np.float32], y: Ints) -> object:  # noqa: N803  # their spelling
        """Learn."""

    def predict_proba(self, X: NDArray[np.float32]) -> Floats:  # noqa: N803
        """Probability of each class in `classes_`, shape (n, n_classes)."""


def last_step(data: "Trajectories") -> NDArray[np.float32]:
    """The last step that a decision may see, and static features; NaN where missing.

    Shape (n_decisions, d + s).
    """
    stay = data.decisions().stay
    return np.concatenate([data.sequence[data.seen_rows], data.static[stay]], axis=1)


def has_past(data: "Trajectories") -> bool:
    """Whether any decision may see more than one step."""
    first = data.offsets[data.decisions().stay]
    return bool((data.seen_rows > first).any())


def last_and_mean(data: "Trajectories") -> NDArray[np.float32]:
    """Summary of each history: its last step, the mean of its steps, their number, static features.

    A missing value is passed over; NaN stands where there is none.
    Shape (n_decisions, 2 d + 1 + s).
    """
    stay, step = data.decisions()
    last = data.seen_rows
    features = data.sequence[:]
    known = ~np.isnan(features)
    start, count = data.offsets[stay], (step + 1 - data.lag)[:, None]

    def so_far(values: NDArray[Any]) -> Floats:
        sums = np.cumsum(values, axis=0, dtype=np.float64)
        before = np.where((start > 0)[:, None], sums[np.maximum(start - 1, 0)], 0.0)
        return np.asarray(sums[last] - before)

    if known.all():
        mean = so_far(features) / count
    else:
        total, there = so_far(np.where(known, features, 0)), so_far(known)
        mean = np.divide(total, there, out=np.full_like(total, np.nan), where=there > 0)
    parts = (features[last], mean, count, data.static[stay])
    return np.concatenate(parts, axis=1).astype(np.float32)


def usual_summary(data: "Trajectories") -> Summary:
    """What a classifier reads of stays if nobody says: of those without a past, their one step."""
    return last_and_mean if has_past(data) else last_step


def column_means(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Mean of the values known of each column, 0 where there is none, shape (d,)."""
    known = ~np.isnan(rows)
    total = np.where(known, rows, 0).sum(axis=0, dtype=np.float64)
    means: NDArray[np.float32] = (total / np.maximum(known.sum(axis=0), 1)).astype(np.float32)
    return means


def fill_gaps(rows: NDArray[np.float32], means: NDArray[np.float32]) -> NDArray[np.float32]:
    """The rows with their columns' means where a value is missing."""
    filled: NDArray[np.float32] = np.where(np.isnan(rows), means, rows)
    return filled


def visible_rows(data: "Trajectories", *, most_numbers: int = MOST_NUMBERS) -> "Floats32":
    """All that a decision could see, in one row: more than the last step, for history confounds.

    The last step, the mean, the change since the step before, the least and the largest value so
    far, the number of steps, static features, and the action before. A missing value is passed
    over; NaN stands where there is none. Shape (n_decisions, columns).

    Args:
        data: Logged stays.
        most_numbers: A larger table leaves out the least and largest, then the change.
    """
    columns = VisibleColumns.of(data, most_numbers=most_numbers)
    table = np.empty((data.n_decisions, columns.width), np.float32)
    columns.write(data, table)
    return table


class VisibleColumns(NamedTuple):
    """What the columns of `visible_rows` hold, as some stays decide it; any of them can be written.

    Args:
        kept: Places of the features.
        widths: Columns of the last step, the mean, the change, the least and largest, the number of
            steps, static features and the action before.
    """

    kept: Sequence[int]
    widths: tuple[int, ...]

    @classmethod
    def of(cls, data: "Trajectories", *, most_numbers: int = MOST_NUMBERS) -> Self:
        """Those that suit some stays; see `visible_rows`."""
        kept = _kept(data.sequence)
        common, width = (1, data.static.shape[1], _action_columns(data)), len(kept)
        room = (most_numbers / data.n_decisions - sum(common)) / max(width, 1)
        if bool((np.diff(data.offsets) <= 1).all()):  # one step: all summaries are that step
            return cls(kept, (width, 0, 0, 0, *common))
        return cls(kept, (width, width, width * (room >= 3), width * 2 * (room >= 5), *common))

    @property
    def width(self) -> int:
        """Of the table."""
        return sum(self.widths)

    def write(self, data: "Trajectories", table: "Floats32") -> None:
        """Fill the rows of some stays, shape (n_decisions, width)."""
        sequence = some_columns(data.sequence, self.kept)
        last, first_row = data.seen_rows, _first_rows(data)
        newest, mean, change, extremes, count, static, before = np.split(
            table, np.cumsum(self.widths)[:-1], axis=1
        )
        newest[:] = sequence[last]
        if change.shape[1]:
            first = last == first_row
            np.subtract(newest, sequence[np.where(first, last, last - 1)], out=change)
            change[first] = 0
        asked = [mean, *np.split(extremes, 2, axis=1)][: 3 if extremes.shape[1] else 1]
        if mean.shape[1]:
            gather(
                walk(data),
                asked,
                begin=lambda rows: _alone(sequence[rows], extremes=len(asked) > 1),
                join=_join,
                finish=lambda own: [mean_of(*own[:2]), *own[2:]],
            )
        count[:, 0] = last - first_row + 1
        static[:] = data.static[data.decisions().stay]
        if before.shape[1]:
            before[:] = _action_before(data, before.shape[1])


def _kept(sequence: "Features") -> list[int]:
    """Places of all features; of more than `MOST_FEATURES` those that vary most."""
    if sequence.shape[1] <= MOST_FEATURES:
        return list(range(sequence.shape[1]))
    some = sequence[:: max(1, len(sequence) // 5000)].astype(np.float64)
    keep = np.sort(np.argsort(-_variance(some), kind="stable")[:MOST_FEATURES])
    return [int(place) for place in keep]


def _variance(values: Floats) -> Floats:
    """Of each column, over the values known."""
    known = ~np.isnan(values)
    count = np.maximum(known.sum(axis=0), 1)
    filled = np.where(known, values, 0.0)
    mean = filled.sum(axis=0) / count
    variance: Floats = np.where(known, (filled - mean) ** 2, 0.0).sum(axis=0) / count
    return variance


def _alone(values: "Floats32", *, extremes: bool) -> Parts:
    """Of a step: sum and number of the values known, and the least and the largest if asked for."""
    known = ~np.isnan(values)
    total = values if known.all() else np.where(known, values, np.float32(0))
    parts = (total, known.astype(np.float32))
    return (*parts, values, values) if extremes else parts


def _join(before: Parts, now: Parts) -> Parts:
    """The same of a history, of what was before a step and that step alone."""
    ways = (np.add, np.add, np.fmin, np.fmax)[: len(now)]
    return [way(own, new) for way, own, new in zip(ways, before, now, strict=True)]


def _action_columns(data: "Trajectories") -> int:
    """How many tell of the action of the step before: one each, or none at single steps."""
    if data.action is None or bool((data.decision_rows == _first_rows(data)).all()):
        return 0
    return 1 if data.n_actions > MOST_ACTIONS else data.n_actions


def _action_before(data: "Trajectories", n_columns: int) -> "Floats32":
    """The action of the step before the decision, shape (n_decisions, n_columns)."""
    assert data.action is not None
    first = data.decision_rows == _first_rows(data)
    before = np.where(first, NO_ACTION, data.action[np.maximum(data.decision_rows - 1, 0)])
    if data.n_actions > MOST_ACTIONS:
        return before.astype(np.float32)[:, None]
    columns: Floats32 = (before[:, None] == np.arange(n_columns)).astype(np.float32)
    return columns


def _first_rows(data: "Trajectories") -> Ints:
    """Row that the stay of each decision begins at, shape (n_decisions,)."""
    return np.asarray(data.offsets[data.decisions().stay])
