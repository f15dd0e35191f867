"""The documented summary of a history: one row a decision, the same columns wherever it is made.

Methods that know no time (penalised regressions, support vector machines, linear policies, d3rlpy)
read stays through it. The columns follow from the schema alone, so that a policy finds them again
in data that it was not fitted on; `docs/method/systems.md` says what each of them is.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from etips.data.decisions import Bools, Ints
from etips.data.schema import MISSING_SUFFIX, Schema

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
    schema, last = like or data.schema, data.seen_rows
    kept, stay = _kept(schema), data.decisions().stay
    gaps, wide = _may_be_missing(schema, kept), _is_wide(schema)
    each: list[list[Floats32]] = [[], [], [], []]
    for start in range(0, len(kept), BLOCK):  # wide steps, a few columns at a time
        some = kept[start : start + BLOCK]
        features = _features(data, some, schema)
        known = ~np.isnan(features)
        each[1].append(_mean(data.offsets, features, known)[last])
        newest, earlier, age = _newest(data.offsets, features, known)
        each[0].append(newest[last])
        if not wide:
            each[2].append((newest - earlier)[last])
            each[3].append(age[last][:, gaps[start : start + BLOCK]])
    count = (last - data.offsets[stay] + 1).astype(np.float32)[:, None]
    parts = [block for part in each for block in part]
    return np.concatenate([*parts, count, data.static[stay]], axis=1)


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


def _features(data: "Trajectories", kept: Sequence[int], schema: Schema) -> "Floats32":
    """Some features of all steps, NaN where missing, as logarithms where learners take them."""
    names, logs = schema.sequence, schema.logarithms
    features = _columns(data.sequence, kept)
    for place, source in enumerate(kept):
        mark = names[source] + MISSING_SUFFIX
        if mark in names:
            missing = _columns(data.sequence, [names.index(mark)])[:, 0] == 1
            features[missing, place] = np.nan
        if names[source] in logs:
            values = features[:, place] + np.float32(LOG_SHIFT)
            features[:, place] = np.log(np.where(values > 0, values, np.float32(np.nan)))
    return features


def _columns(sequence: "Features", kept: Sequence[int]) -> "Floats32":
    """A copy of some columns; those of a coded sequence are looked up by themselves."""
    places = list(kept)
    if isinstance(sequence, np.ndarray):
        return np.array(sequence[:, places], np.float32)
    return replace(sequence, table=sequence.table[:, places])[:]


def _newest(
    offsets: Ints, features: "Floats32", known: Bools
) -> tuple["Floats32", "Floats32", "Floats32"]:
    """The last value known at every step, the one known before it, and how many steps ago it was.

    Where there is one value only, the one before is that one; without any, all are NaN.
    """
    newest, earlier = features.copy(), features.copy()
    age = np.where(known, np.float32(0), np.float32(np.nan))
    starts, lengths = offsets[:-1], np.diff(offsets)
    for step in range(1, int(lengths.max(initial=0))):
        rows = starts[lengths > step] + step
        there, before = known[rows], newest[rows - 1]
        newest[rows] = np.where(there, features[rows], before)
        first = np.isnan(before)
        earlier[rows] = np.where(there, np.where(first, features[rows], before), earlier[rows - 1])
        age[rows] = np.where(there, np.float32(0), age[rows - 1] + 1)
    return newest, earlier, age


def _mean(offsets: Ints, features: "Floats32", known: Bools) -> "Floats32":
    """Mean of the values known up to each step of its stay."""
    total, count = np.where(known, features, np.float32(0)), known.astype(np.float32)
    starts, lengths = offsets[:-1], np.diff(offsets)
    for step in range(1, int(lengths.max(initial=0))):
        rows = starts[lengths > step] + step
        total[rows] += total[rows - 1]
        count[rows] += count[rows - 1]
    return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
