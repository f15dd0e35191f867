"""The column that `--by` names: a feature, or a column of the table that nobody else sees."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from etips.data.intake.last_rows import visible_columns
from etips.data.tables.columns import TableColumns
from etips.data.tables.reading import read_table
from etips.data.trajectories import Trajectories
from etips.errors import DataError, EtipsError
from etips.notes import collecting_notes
from etips.results.decision_groups import column_values


def read_places(
    data: Path, columns: TableColumns, stays: Trajectories, by: str
) -> str | Mapping[str, ArrayLike]:
    """The name of a column that the data holds, else its values at each decision by its name.

    A run's policy was fitted without it, perhaps, or it is dropped: the table is then read once
    more, for this column alone.

    Args:
        data: The folder or the table.
        columns: What was said about the table.
        stays: What was read of it.
        by: The column.
    """
    if data.is_dir() or by in (*visible_columns(stays.schema), stays.schema.roles.step):
        return by
    with collecting_notes():  # what is remarked of a table has been told
        alone = _read_alone(data, columns, stays, by)
    if alone.n_stays > stays.n_stays:  # some were kept apart
        alone = alone.subset(np.isin(alone.stay, stays.stay))
    if not np.array_equal(alone.offsets, stays.offsets):
        rule = "cannot be matched with the stays"
        raise DataError(f"--by, column {by}", rule, fix="Make it a feature of the table.")
    # Without a log and a lag every step is a decision, so that values stand row by row.
    return {by: column_values(alone, by)[stays.decision_rows]}


def _read_alone(data: Path, columns: TableColumns, stays: Trajectories, by: str) -> Trajectories:
    """The same rows with this column as the only feature: once a stay, or else once a step."""
    recipe, roles = stays.schema.recipe, stays.schema.roles
    numbered = () if recipe is None else recipe.numbered
    named = {
        name: getattr(columns, name) or getattr(roles, name)
        for name in ("stay", "step")
        if name not in numbered
    }
    said = {k: v for k, v in columns.given.items() if k in ("every", "combine", "group")}
    if recipe is not None and recipe.every is not None:
        said["every"] = recipe.every.every
    said = {**said, **named, "features": (by,), "missing": "carry", "lag": 0}
    try:
        return read_table(data, **{**said, "static": (by,)})  # type: ignore[arg-type]
    except EtipsError as error:
        if "must not change within a stay" not in str(error):
            raise
    return read_table(data, **said)  # type: ignore[arg-type]
