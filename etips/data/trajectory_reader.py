"""Trajectories folders as they are read: every byte is checked against the manifest first."""

from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from etips.data.coded import Coded, Features, Floats32, Truth
from etips.data.decisions import NO_ACTION, PER_STEP, MissingLoss, require_missing_loss
from etips.data.schema import Schema
from etips.data.tables.arrow_columns import fill_rows
from etips.data.trajectories import Trajectories
from etips.data.trajectory_writer import (
    CODE,
    FORMAT,
    MANIFEST,
    TRUTH,
    VERSION,
    truth_names,
)
from etips.errors import EtipsError, FileError
from etips.files.artifacts import read_artifact


def load_trajectories(folder: str | Path) -> Trajectories:
    """Read a Trajectories folder; anything changed since it was written is refused by name."""
    folder = Path(folder)
    document = read_artifact(folder, manifest_name=MANIFEST)
    if document.get("format") != FORMAT or document.get("version") != VERSION:
        raise FileError(str(folder / MANIFEST), f"must be {FORMAT}, version {VERSION}")
    try:
        return _rebuild(folder, document)
    except EtipsError:
        raise
    except (pa.ArrowException, ArithmeticError, LookupError, OSError, TypeError, ValueError):
        raise FileError(str(folder), "does not hold what its manifest says") from None


def _rebuild(folder: Path, document: dict[str, object]) -> Trajectories:
    schema = Schema.from_json(document["schema"])
    roles = schema.roles
    steps, stays = pq.ParquetFile(folder / "steps.parquet"), pq.read_table(folder / "stays.parquet")
    present = set(steps.schema_arrow.names)
    others = [name for name in steps.schema_arrow.names if name not in schema.sequence]
    cells = steps.read(columns=others)
    unit = document.get("unit")
    sequence: Features = (
        _read_matrix(steps, schema.sequence)
        if unit is None
        else _read_coded(folder, schema, cells, unit)
    )
    per_step = {
        role: _from_cells(role, cells.column(getattr(roles, role)))
        for role in PER_STEP
        if document["logged"] and getattr(roles, role) in present
    }
    identifiers = _labels(stays.column(roles.stay))
    static = np.empty((stays.num_rows, len(schema.static)), np.float32)
    fill_rows(static, [stays.column(name) for name in schema.static])
    require_missing_loss(str(document.get("missing_loss", "drop")))
    return Trajectories(
        sequence=sequence,
        offsets=_offsets(_labels(cells.column(roles.stay)), identifiers),
        schema=schema,
        static=static,
        stay=identifiers,
        step=cells.column(roles.step).to_numpy(),
        group=_labels(stays.column(roles.group)) if roles.group in stays.column_names else None,
        truth=_read_truth(folder, cells, schema.n_actions) if TRUTH in present else None,
        missing_loss=cast(MissingLoss, document.get("missing_loss", "drop")),
        **per_step,
    )


def _offsets(stay_of_step: NDArray[Any], stays: NDArray[Any]) -> NDArray[np.int64]:
    """Where each stay starts; the steps must stand in the order of the stays."""
    starts = np.flatnonzero(np.concatenate([[True], stay_of_step[1:] != stay_of_step[:-1]]))
    if not np.array_equal(stay_of_step[starts], stays):
        raise ValueError("steps and stays disagree")
    return np.append(starts, len(stay_of_step))


def _labels(column: pa.ChunkedArray) -> NDArray[Any]:
    values: NDArray[Any] = column.to_numpy()
    return values.astype(np.str_) if values.dtype == object else values


def _from_cells(role: str, column: pa.ChunkedArray) -> NDArray[Any]:
    if role == "action":
        column = column.fill_null(NO_ACTION)
    kind = {"action": np.int64, "eligible": np.bool_}.get(role, np.float64)
    values: NDArray[Any] = column.to_numpy().astype(kind, copy=False)
    return values


def _read_matrix(file: pq.ParquetFile, names: tuple[str, ...]) -> Floats32:
    matrix = np.empty((file.metadata.num_rows, len(names)), np.float32)
    if not names:
        return matrix
    start = 0
    for group in range(file.num_row_groups):
        part = file.read_row_group(group, columns=list(names))
        fill_rows(matrix[start : start + part.num_rows], [part.column(name) for name in names])
        start += part.num_rows
    return matrix


def _read_coded(folder: Path, schema: Schema, cells: pa.Table, unit: object) -> Coded:
    book = pq.read_table(folder / "codebook.parquet")
    kind = book.schema.field(0).type.to_pandas_dtype()
    table = np.empty((book.num_rows, len(schema.sequence)), kind)
    for position, name in enumerate(schema.sequence):
        table[:, position] = book.column(name).to_numpy()
    code = cells.column(CODE).to_numpy().astype(np.int32)
    return Coded(table, code, float(str(unit)))


def _read_truth(folder: Path, cells: pa.Table, n_actions: int) -> Truth:
    table = pq.read_table(folder / "truth.parquet")
    both = np.stack([table.column(name).to_numpy() for name in truth_names(n_actions)], axis=1)
    code = cells.column(TRUTH).to_numpy().astype(np.int32)
    return Truth(code, both[:, :n_actions], both[:, n_actions:])
