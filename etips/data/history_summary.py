"""The documented summary of a history: one row a decision, the same columns wherever it is made.

Methods that know no time (penalised regressions, support vector machines, linear policies, d3rlpy)
read stays through it. The columns follow from the schema alone, so that a policy finds them again
in data that it was not fitted on; `docs/method/systems.md` says what each of them is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from etips.data.decisions import Bools, Ints
from etips.data.schema import MISSING_SUFFIX, Schema
from etips.data.step_walk import Parts, gather, mean_of, side_by_side, some_columns, walk

if TYPE_CHECKING:  # the evaluation makes rows too, and must not reach pyarrow by way of files
    from etips.data.coded import Features, Floats32
    from etips.data.trajectories import Trajectories

WIDE = 128
"""Of steps with more features (images, say) the last values and the means are all that is kept."""

LOG_SHIFT = 0.1
"""Added before a logarithm is taken, as `Scaler` does."""

BLOCK = 64
"""Columns that are looked at together."""


def summarise_history(data: "Trajectories", like: Schema | None = None) -> "Floats32":
    """What a decision may see, in one row: nothing of a later step, nor of its own where lag is 1.

    Of every sequential feature the last value known, the mean of the values known, the change from
    the one known before to the last; of features that may be missing, how many steps ago they were
    measured; the number of steps; static features. Features whose logarithm learners take are
    logarithms here too. NaN stands where nothing is known yet. Shape (n_decisions, columns).

    Args:
        data: The stays.
        like: Says which features may be missing and which are logarithms, in place of their own
            schema: a policy's, where they are read for it.
    """
    schema, steps, stay = like or data.schema, walk(data), data.decisions().stay
    kept = _kept(schema)
    gaps, wide = _may_be_missing(schema, kept), _is_wide(schema)
    n_kept, ages = len(kept), np.concatenate([[0], np.cumsum(gaps)])
    widths = (n_kept, n_kept, 0 if wide else n_kept, 0 if wide else int(ages[-1]))
    table, parts = side_by_side(data.n_decisions, (*widths, 1, data.static.shape[1]))
    for start in range(0, n_kept, BLOCK):  # wide steps, a few columns at a time
        stop = min(start + BLOCK, n_kept)
        reader = _Reader.of(data, kept[start:stop], schema)
        bounds = [(start, stop)] * 3 + [(ages[start], ages[stop])]
        results = [part[:, low:high] for part, (low, high) in zip(parts, bounds, strict=False)]
        gather(
            steps,
            results[: 2 if wide else 4],
            begin=partial(_alone, reader, wide),
            join=_join,
            finish=partial(_finish, gaps[start:stop]),
        )
    parts[4][:, 0] = data.seen_rows - data.offsets[stay] + 1
    parts[5][:] = data.static[stay]
    return table


def summary_columns(schema: Schema) -> tuple[str, ...]:
    """What the columns of `summarise_history` are called, in their order."""
    names = [schema.sequence[place] for place in _kept(schema)]
    columns = [*(f"last {name}" for name in names), *(f"mean {name}" for name in names)]
    if not _is_wide(schema):
        columns += [f"change {name}" for name in names]
        gaps = _may_be_missing(schema, _kept(schema))
        columns += [f"steps since {name}" for name, gap in zip(names, gaps, strict=True) if gap]
    return (*columns, "steps", *schema.static)


def _is_wide(schema: Schema) -> bool:
    return len(_kept(schema)) > WIDE


def _kept(schema: Schema) -> list[int]:
    """Places of the features; columns that say whether one is missing are told by its age."""
    marks = {name + MISSING_SUFFIX for name in schema.sequence}
    return [place for place, name in enumerate(schema.sequence) if name not in marks]


def _may_be_missing(schema: Schema, kept: Sequence[int]) -> Bools:
    names = [schema.sequence[place] for place in kept]
    marked = [name + MISSING_SUFFIX in schema.sequence for name in names]
    return np.array(
        [m or schema.may_be_missing(n) for m, n in zip(marked, names, strict=True)], bool
    )


@dataclass(frozen=True, eq=False)
class _Reader:
    """Some features, NaN where missing, as logarithms where learners take them.

    Args:
        features: Their columns.
        marks: Columns that are 1 where a feature is missing.
        marked: Places of the features that these are about.
        logs: Places of the features that are logarithms.
    """

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
        features = some_columns(data.sequence, kept)
        return cls(features, some_columns(data.sequence, marks), marked, logs)

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


def _alone(reader: _Reader, wide: bool, rows: Ints) -> Parts:
    """Of a first step: the last value known, the sum and the number of those known.

    Unless steps are wide the one known before the last and how many steps ago the last was, too.
    Where there is one value only, the one before is that one; without any, all these are NaN.
    """
    features = reader.read(rows)
    known = ~np.isnan(features)
    if known.all():
        total, age = features, np.zeros_like(features)
    else:
        total = np.where(known, features, np.float32(0))
        age = np.where(known, np.float32(0), np.float32(np.nan))
    parts = (features, total, known.astype(np.float32))
    return parts if wide else (*parts, features, age)


def _join(before: Parts, now: Parts) -> Parts:
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
    age = now[-1]
    if not all_known:
        earlier = np.where(known, earlier, rest[0])
        age = np.where(known, np.float32(0), rest[1] + 1)
    return (*joined, earlier, age)


def _finish(gaps: Bools, parts: Parts) -> Parts:
    """Last value and mean; unless steps are wide the change, and the age of what may be missing."""
    newest, total, count, *rest = parts
    if not rest:
        return newest, mean_of(total, count)
    return newest, mean_of(total, count), newest - rest[0], rest[1][:, gaps]
