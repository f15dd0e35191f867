"""What each decision saw last, by the columns of the table that the data came from.

A rule is written in the words of the table: `ward = 'icu'`, `map < 65`. So levels are joined back
into their column, yes and no get their words again, and numbers their decimals (38.3 is held as a
float32, which is a little less).
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from etips.data.decisions import Floats
from etips.data.schema import MISSING_SUFFIX, Schema

if TYPE_CHECKING:
    import pyarrow as pa

    from etips.data.coded import Floats32
    from etips.data.trajectories import Trajectories

Values = NDArray[np.float64] | NDArray[np.bool_] | NDArray[np.object_] | NDArray[np.generic]


def visible_columns(schema: Schema) -> tuple[str, ...]:
    """Names that a rule may use, in the order of the features, the step's own name last."""
    blocks = (schema.sequence, schema.static)
    sources = dict.fromkeys(name for block in blocks for name in _positions(schema, block))
    step = schema.roles.step
    return (*sources, step) if step not in sources else tuple(sources)


def last_values(data: "Trajectories", names: Iterable[str] | None = None) -> dict[str, Values]:
    """The last visible value of each column at every decision, shape (n_decisions,) each.

    It is that of the row before the decision's own where `lag` is 1. Numbers are float64, NaN where
    none is known yet: a gap that was carried has the value carried into it, and `name_missing` is
    true there. Categories and yes/no are text, None where not known. `step` is the label of the
    last visible row.

    Args:
        data: The stays.
        names: Columns wanted, among `visible_columns`; all of them if left out.
    """
    schema, last, stay = data.schema, data.seen_rows, data.decisions().stay
    wanted = tuple(visible_columns(schema) if names is None else names)
    values: dict[str, Values] = {}
    for block, features, rows in (
        (schema.sequence, data.sequence, last),
        (schema.static, data.static, stay),
    ):
        sources = {k: own for k, own in _positions(schema, block).items() if k in wanted}
        table = features[rows] if sources else np.zeros((0, 0), np.float32)
        for source, columns in sources.items():
            values[source] = _column(schema, source, table[:, columns])
    step = schema.roles.step
    if step in wanted and step not in values:
        values[step] = np.asarray(data.step)[last]
    return {name: values[name] for name in wanted}


def last_rows(data: "Trajectories", names: Iterable[str] | None = None) -> "pa.Table":
    """The same as a table, one row a decision in decision order; what is not known is null."""
    import pyarrow as pa  # noqa: PLC0415  # evaluation must run without it

    columns = last_values(data, names)
    arrays = {name: pa.array(own, from_pandas=True) for name, own in columns.items()}
    n = data.n_decisions
    return pa.table(arrays) if arrays else pa.table({"": pa.nulls(n)}).select([])


def _positions(schema: Schema, block: tuple[str, ...]) -> dict[str, list[int]]:
    """Numbers of the features that were made of each column, by its name."""
    level_of = {
        f"{name}={own}": name for name, levels in schema.categories.items() for own in levels
    }
    positions: dict[str, list[int]] = {}
    for number, feature in enumerate(block):
        positions.setdefault(level_of.get(feature, feature), []).append(number)
    return positions


def _column(schema: Schema, source: str, table: "Floats32") -> Values:
    """A column of the table from the features that were made of it, shape (n, features)."""
    if source in schema.categories:
        names = np.array([*schema.categories[source], None], object)
        return np.asarray(names[np.where((table == 1).any(axis=1), table.argmax(axis=1), -1)])
    own = table[:, 0]
    known = None if schema.recipe is None else schema.recipe.kinds.get(source)
    words = known.levels if known is not None and known.kind == "yes_no" else ()
    if words:  # what the table calls no and yes
        place = np.where(np.isnan(own), 2, own == 1).astype(np.int64)
        return np.asarray(np.array([*words, None], object)[place])
    if source.endswith(MISSING_SUFFIX) and source.removesuffix(MISSING_SUFFIX) in schema.indicators:
        return np.asarray(own == 1)
    return as_written(own)


def as_written(values: NDArray[np.float32]) -> Floats:
    """Float32 as the float64 of the decimals it was most likely written with, shape (n,).

    38.3 would otherwise come back as 38.29999924, and a rule that asks for 38.3 would miss it.
    """
    distinct, place = np.unique(values, return_inverse=True)
    if (distinct[~np.isnan(distinct)] % 1 == 0).all():
        return np.asarray(values, np.float64)
    return distinct.astype(np.str_).astype(np.float64)[place]
