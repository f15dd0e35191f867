"""Histories as rows of one width, for models that know no time."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from etips.data.decisions import NO_ACTION, Floats, Ints

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

BLOCK = 4096


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
    sequence = _narrow(data.sequence)
    n, width = data.n_decisions, sequence.shape[1]
    last, stay = data.seen_rows, data.decisions().stay
    count = (last - data.offsets[stay] + 1).astype(np.float32)[:, None]
    common = [count, data.static[stay], _action_before(data)]
    room = (most_numbers / n - sum(part.shape[1] for part in common)) / max(width, 1)
    if bool((np.diff(data.offsets) <= 1).all()):  # one step: all summaries are that step
        return np.concatenate([sequence[last], *common], axis=1)
    parts = [sequence[last], _mean_so_far(data.offsets, sequence)[last]]
    if room >= 3:
        parts.append(_change(data.offsets, sequence, last, stay))
    if room >= 5:
        parts += [_so_far(data.offsets, sequence, f)[last] for f in (np.fmin, np.fmax)]
    return np.concatenate([*parts, *common], axis=1)


def _narrow(sequence: "Features") -> "Floats32":
    """All steps in full, at most `MOST_FEATURES` columns of them."""
    if sequence.shape[1] <= MOST_FEATURES:
        return sequence[:]
    some = sequence[:: max(1, len(sequence) // 5000)].astype(np.float64)
    keep = np.sort(np.argsort(-_variance(some), kind="stable")[:MOST_FEATURES])
    parts = (sequence[start : start + BLOCK][:, keep] for start in range(0, len(sequence), BLOCK))
    return np.concatenate(list(parts))


def _variance(values: Floats) -> Floats:
    """Of each column, over the values known."""
    known = ~np.isnan(values)
    count = np.maximum(known.sum(axis=0), 1)
    filled = np.where(known, values, 0.0)
    mean = filled.sum(axis=0) / count
    variance: Floats = np.where(known, (filled - mean) ** 2, 0.0).sum(axis=0) / count
    return variance


def _mean_so_far(offsets: Ints, sequence: "Floats32") -> "Floats32":
    """Mean of the values known up to each step of its stay, shape (n_steps, d)."""
    known = ~np.isnan(sequence)
    total = _so_far(offsets, np.where(known, sequence, np.float32(0)), np.add)
    count = _so_far(offsets, known.astype(np.float32), np.add)
    mean = np.full_like(total, np.nan)
    return np.divide(total, count, out=mean, where=count > 0)


def _so_far(offsets: Ints, values: "Floats32", join: np.ufunc) -> "Floats32":
    """`join` over the steps of a stay up to each of them, all stays a step at a time."""
    result = values.copy()
    starts, lengths = offsets[:-1], np.diff(offsets)
    for step in range(1, int(lengths.max(initial=0))):
        rows = starts[lengths > step] + step
        result[rows] = join(result[rows - 1], values[rows])
    return result


def _change(offsets: Ints, sequence: "Floats32", last: Ints, stay: Ints) -> "Floats32":
    """Last value minus the one a step before; 0 at a stay's first step."""
    first = last == offsets[stay]
    change: Floats32 = sequence[last] - sequence[np.where(first, last, last - 1)]
    change[first] = 0
    return change


def _action_before(data: "Trajectories") -> "Floats32":
    """The action of the step before the decision: a column each, or none at single steps."""
    first = data.decision_rows == data.offsets[data.decisions().stay]
    if data.action is None or bool(first.all()):
        return np.zeros((data.n_decisions, 0), np.float32)
    before = np.where(first, NO_ACTION, data.action[np.maximum(data.decision_rows - 1, 0)])
    if data.n_actions > MOST_ACTIONS:
        return before.astype(np.float32)[:, None]
    columns: Floats32 = (before[:, None] == np.arange(data.n_actions)).astype(np.float32)
    return columns
