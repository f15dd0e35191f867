"""Histories as rows of one width, for models that know no time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from etips.data.decisions import NO_ACTION, Bools, Floats, Ints
from etips.data.schema import MISSING_SUFFIX, Schema

if TYPE_CHECKING:  # the evaluation makes rows too, and must not reach pyarrow by way of files
    from etips.data.coded import Features, Floats32
    from etips.data.trajectories import Trajectories

Parts = Sequence["Floats32"]

Summary = Callable[["Trajectories"], NDArray[np.float32]]
"""Turns stays into one row a decision."""

LOG_SHIFT = 0.1
"""Added before a logarithm is taken, as `Scaler` does."""

_MOST_ACTIONS = 30  # the one before is a column each; beyond, one column with its number
_MOST_FEATURES = 128  # of wider steps (images, say) those that vary most are kept
_MOST_NUMBERS = 100_000_000  # 400 MB; a larger table leaves out the least telling summaries
_WIDE = 128  # features of a step of which last values and means are all that is kept
_BLOCK = 64  # columns that are looked at together


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
    return bool((data.seen_rows > _first_rows(data)).any())


def last_and_mean(data: "Trajectories") -> NDArray[np.float32]:
    """Summary of each history: its last step, the mean of its steps, their number, static features.

    A missing value is passed over; NaN stands where there is none.
    Shape (n_decisions, 2 d + 1 + s).
    """
    features, last, start = data.sequence[:], data.seen_rows, _first_rows(data)
    known = ~np.isnan(features)
    count = (last - start + 1)[:, None]

    def so_far(values: NDArray[Any]) -> Floats:
        sums = np.cumsum(values, axis=0, dtype=np.float64)
        before = np.where((start > 0)[:, None], sums[np.maximum(start - 1, 0)], 0.0)
        return np.asarray(sums[last] - before)

    if known.all():
        mean = so_far(features) / count
    else:
        total, there = so_far(np.where(known, features, 0)), so_far(known)
        mean = np.divide(total, there, out=np.full_like(total, np.nan), where=there > 0)
    parts = (features[last], mean, count, data.static[data.decisions().stay])
    return np.concatenate(parts, axis=1).astype(np.float32)


def usual_summary(data: "Trajectories") -> Summary:
    """What a classifier reads of stays by default: of those without a past, their one step."""
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


class _Step(NamedTuple):
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


def _walk(data: "Trajectories") -> list[_Step]:
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
        _Step(starts[: n_left[step]] + step, place[stay[asked]], asked)
        for step in range(longest)
        for asked in [by_end[bounds[step] : bounds[step + 1]]]
    ]


def _gather(
    steps: Sequence[_Step],
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


def _mean_of(total: "Floats32", count: "Floats32") -> "Floats32":
    return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)


def _side_by_side(n_rows: int, widths: Sequence[int]) -> "tuple[Floats32, list[Floats32]]":
    """An empty table, and its columns in parts of some widths."""
    table = np.empty((n_rows, sum(widths)), np.float32)
    return table, np.split(table, np.cumsum(widths)[:-1], axis=1)


def _some_columns(sequence: "Features", places: Sequence[int]) -> "Features":
    """Some columns; of a coded sequence the table's alone are copied, of all of them nothing."""
    if list(places) == list(range(sequence.shape[1])):
        return sequence
    if isinstance(sequence, np.ndarray):
        return np.ascontiguousarray(sequence[:, list(places)])
    return replace(sequence, table=sequence.table[:, list(places)])


def _first_rows(data: "Trajectories") -> Ints:
    """Row that the stay of each decision begins at, shape (n_decisions,)."""
    return np.asarray(data.offsets[data.decisions().stay])


def visible_rows(data: "Trajectories", *, most_numbers: int = _MOST_NUMBERS) -> "Floats32":
    """All that a decision could see, in one row: more than the last step, for history confounds.

    The last step, the mean, the change since the step before, the least and the largest value so
    far, the number of steps, static features, and the action before. A missing value is passed
    over; NaN stands where there is none. Shape (n_decisions, columns).
    """
    sequence = _some_columns(data.sequence, _most_varying(data.sequence))
    last, first = data.seen_rows, _first_rows(data)
    n_actions = 1 if data.n_actions > _MOST_ACTIONS else data.n_actions
    if data.action is None or bool((data.decision_rows == first).all()):
        n_actions = 0
    width, common = sequence.shape[1], (1, data.static.shape[1], n_actions)
    room = (most_numbers / data.n_decisions - sum(common)) / max(width, 1)
    some = (width, width, width * (room >= 3), width * 2 * (room >= 5))
    if bool((np.diff(data.offsets) <= 1).all()):  # one step: all summaries are that step
        some = (width, 0, 0, 0)
    table, parts = _side_by_side(data.n_decisions, (*some, *common))
    newest, mean, change, extremes, count, static, before = parts
    newest[:] = sequence[last]
    if change.shape[1]:
        alone = last == first
        np.subtract(newest, sequence[np.where(alone, last, last - 1)], out=change)
        change[alone] = 0
    if mean.shape[1]:
        both = extremes.shape[1] > 0
        _gather(
            _walk(data),
            [mean, *(np.split(extremes, 2, axis=1) if both else [])],
            begin=lambda rows: _alone(sequence[rows], extremes=both),
            join=_joined,
            finish=lambda own: [_mean_of(*own[:2]), *own[2:]],
        )
    count[:, 0] = last - first + 1
    static[:] = data.static[data.decisions().stay]
    if n_actions and data.action is not None:
        rows = data.decision_rows
        action = np.where(rows == first, NO_ACTION, data.action[np.maximum(rows - 1, 0)])[:, None]
        before[:] = action if data.n_actions > _MOST_ACTIONS else action == np.arange(n_actions)
    return table


def _most_varying(sequence: "Features") -> list[int]:
    """Places of all features; of more than `_MOST_FEATURES` those that vary most."""
    if sequence.shape[1] <= _MOST_FEATURES:
        return list(range(sequence.shape[1]))
    some = sequence[:: max(1, len(sequence) // 5000)].astype(np.float64)
    known = ~np.isnan(some)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, some, 0.0).sum(axis=0) / count
    variance = np.where(known, (np.where(known, some, 0.0) - mean) ** 2, 0.0).sum(axis=0) / count
    keep = np.sort(np.argsort(-variance, kind="stable")[:_MOST_FEATURES])
    return [int(place) for place in keep]


def _alone(values: "Floats32", *, extremes: bool) -> Parts:
    """Of a step: sum and number of the values known, and the least and the largest if asked for."""
    known = ~np.isnan(values)
    total = values if known.all() else np.where(known, values, np.float32(0))
    parts = (total, known.astype(np.float32))
    return (*parts, values, values) if extremes else parts


def _joined(before: Parts, now: Parts) -> Parts:
    """The same of a history, of what was before a step and that step alone."""
    ways = (np.add, np.add, np.fmin, np.fmax)[: len(now)]
    return [way(own, new) for way, own, new in zip(ways, before, now, strict=True)]


def summarise_history(
    data: "Trajectories", like: Schema | None = None, *, extremes: bool = False
) -> "Floats32":
    """What a decision may see, in one row: nothing of a later step, nor of its own where lag is 1.

    Of every sequential feature the last value known, the mean of the values known, the change from
    the one known before to the last; of features that may be missing, how many steps ago they were
    measured; the number of steps; static features. Features whose logarithm learners take are
    logarithms here too. NaN stands where nothing is known yet. Shape (n_decisions, columns).

    Args:
        data: The stays.
        like: Says which features may be missing and which are logarithms, in place of their own
            schema: a policy's, where they are read for it.
        extremes: Whether the lowest, the highest and the first value known of every feature follow
            at the end; not of wide steps.
    """
    schema, steps, stay = like or data.schema, _walk(data), data.decisions().stay
    kept = kept_features(schema)
    gaps, wide = have_gaps(schema, kept), is_wide(schema)
    n_kept, ages = len(kept), np.concatenate([[0], np.cumsum(gaps)])
    extremes = extremes and not wide
    widths = (n_kept, n_kept, 0 if wide else n_kept, 0 if wide else int(ages[-1]))
    more = (n_kept, n_kept, n_kept) if extremes else ()
    table, parts = _side_by_side(data.n_decisions, (*widths, 1, data.static.shape[1], *more))
    for start in range(0, n_kept, _BLOCK):  # wide steps, a few columns at a time
        stop = min(start + _BLOCK, n_kept)
        reader = _Reader.of(data, kept[start:stop], schema)
        by_step = [*parts[: 2 if wide else 4], *parts[6:]]
        bounds = [(start, stop)] * len(by_step)
        if not wide:
            bounds[3] = (ages[start], ages[stop])
        _gather(
            steps,
            [part[:, low:high] for part, (low, high) in zip(by_step, bounds, strict=True)],
            begin=partial(_known_alone, reader, wide, extremes),
            join=_known_joined,
            finish=partial(_finish, gaps[start:stop]),
        )
    parts[4][:, 0] = data.seen_rows - data.offsets[stay] + 1
    parts[5][:] = data.static[stay]
    return table


def summary_columns(schema: Schema, *, extremes: bool = False) -> tuple[str, ...]:
    """What the columns of `summarise_history` are called, in their order."""
    kept = kept_features(schema)
    names = [schema.sequence[place] for place in kept]
    columns = [*(f"last {name}" for name in names), *(f"mean {name}" for name in names)]
    if not is_wide(schema):
        columns += [f"change {name}" for name in names]
        gaps = have_gaps(schema, kept)
        columns += [f"steps since {name}" for name, gap in zip(names, gaps, strict=True) if gap]
    columns += ["steps", *schema.static]
    if extremes and not is_wide(schema):
        columns += [f"{which} {name}" for which in ("lowest", "highest", "first") for name in names]
    return tuple(columns)


def is_wide(schema: Schema) -> bool:
    """Whether steps have so many features that last values and means are all that is kept."""
    return len(kept_features(schema)) > _WIDE


def kept_features(schema: Schema) -> list[int]:
    """Places of the features; columns that say whether one is missing are told by its age."""
    marks = {name + MISSING_SUFFIX for name in schema.sequence}
    return [place for place, name in enumerate(schema.sequence) if name not in marks]


def have_gaps(schema: Schema, kept: Sequence[int]) -> Bools:
    """Which of some features may be missing."""
    names = [schema.sequence[place] for place in kept]
    marked = set(schema.sequence)
    return np.array([n + MISSING_SUFFIX in marked or schema.may_be_missing(n) for n in names], bool)


@dataclass(frozen=True, eq=False)
class _Reader:
    """Some features, NaN where missing, as logarithms where learners take them."""

    features: "Features"
    marks: "Features"
    marked: Sequence[int]
    logs: Sequence[int]

    @classmethod
    def of(cls, data: "Trajectories", kept: Sequence[int], schema: Schema) -> "_Reader":
        source = {name: place for place, name in enumerate(schema.sequence)}
        names = [schema.sequence[place] for place in kept]
        marked = [i for i, name in enumerate(names) if name + MISSING_SUFFIX in source]
        marks = [source[names[i] + MISSING_SUFFIX] for i in marked]
        logs = [i for i, name in enumerate(names) if name in schema.logarithms]
        features = _some_columns(data.sequence, kept)
        return cls(features, _some_columns(data.sequence, marks), marked, logs)

    def read(self, rows: Ints) -> "Floats32":
        """The features of some steps, a copy, shape (len(rows), d)."""
        features = self.features[rows]
        if self.marked:
            missing = self.marks[rows] == 1
            for column, place in enumerate(self.marked):
                features[missing[:, column], place] = np.nan
        for place in self.logs:
            values = features[:, place] + np.float32(LOG_SHIFT)
            features[:, place] = np.log(np.where(values > 0, values, np.float32(np.nan)))
        return features


def _known_alone(reader: _Reader, wide: bool, extremes: bool, rows: Ints) -> Parts:
    """Of a first step: the last value known, the sum and the number of those known.

    Unless steps are wide the one known before the last and how many steps ago the last was, too,
    and the lowest and the highest if asked for. Where there is one value only, the one before is
    that one; without any, all these are NaN.
    """
    features = reader.read(rows)
    known = ~np.isnan(features)
    if known.all():
        total, age = features, np.zeros_like(features)
    else:
        total = np.where(known, features, np.float32(0))
        age = np.where(known, np.float32(0), np.float32(np.nan))
    parts: Parts = (features, total, known.astype(np.float32))
    if not wide:
        parts = (*parts, features, age)
    return (*parts, features, features, features) if extremes else parts


def _known_joined(before: Parts, now: Parts) -> Parts:
    """The same of a history, of what was before a step and that step alone."""
    newest, total, count, *rest = before
    features, added, counted, *_ = now
    known = counted > 0
    all_known = bool(known.all())
    joined = (
        features if all_known else np.where(known, features, newest),
        added + total,
        counted + count,
    )
    if not rest:
        return joined
    earlier = np.where(np.isnan(newest), features, newest)
    age = now[4]
    if not all_known:
        earlier = np.where(known, earlier, rest[0])
        age = np.where(known, np.float32(0), rest[1] + 1)
    ways = (np.fmin, np.fmax, _first_known)[: len(now) - 5]  # none where extremes are not asked for
    extremes = (way(own, new) for way, own, new in zip(ways, rest[2:], now[5:], strict=True))
    return (*joined, earlier, age, *extremes)


def _first_known(own: "Floats32", new: "Floats32") -> "Floats32":
    """The value known first."""
    return np.where(np.isnan(own), new, own)


def _finish(gaps: Bools, parts: Parts) -> Parts:
    """Last value and mean; unless steps are wide the change, and the age of what may be missing."""
    newest, total, count, *rest = parts
    if not rest:
        return newest, _mean_of(total, count)
    return newest, _mean_of(total, count), newest - rest[0], rest[1][:, gaps], *rest[2:]
