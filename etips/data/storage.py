"""Trajectories folders and tables: Parquet, sealed by a manifest, every byte checked when read.

`steps.parquet` holds a row a step, `stays.parquet` a row a stay, `schema.json` names, roles and
checksums. A coded sequence adds `codebook.parquet`, simulated data `truth.parquet`.
"""

import contextlib
import gzip
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from etips.data.coded import Coded, Features, Floats32, Truth
from etips.data.decisions import NO_ACTION, PER_STEP, MissingLoss, require_missing_loss
from etips.data.schema import Schema
from etips.data.tables.arrow_columns import fill_rows
from etips.data.trajectories import Trajectories
from etips.errors import EtipsError, FileError
from etips.files.artifacts import read_artifact, write_artifact
from etips.files.writing import Content, write_file

MANIFEST = "schema.json"
_FORMAT, _VERSION = "etips/trajectories", 1
_CODE, _TRUTH = "__code__", "__truth__"  # columns of steps.parquet beside the user's own
_ROWS = 131_072  # rows written together


def save_trajectories(
    data: Trajectories,
    folder: Path,
    *,
    overwrite: bool = False,
    beside: Mapping[str, Content] | None = None,
) -> None:
    """Write a Trajectories folder; it appears whole or not at all."""
    _require_distinct(data, folder)
    files: dict[str, Content] = {
        "steps.parquet": _parquet(_steps(data)),
        "stays.parquet": _parquet([_stays(data)]),
    }
    manifest: dict[str, object] = {
        "format": _FORMAT,
        "version": _VERSION,
        "schema": data.schema.to_json(),
        "logged": data.action is not None,
    }
    if data.missing_loss != "drop":
        manifest["missing_loss"] = data.missing_loss
    if isinstance(data.sequence, Coded):
        book = pa.table(_columns(data.sequence.table, data.schema.sequence))
        files["codebook.parquet"] = _parquet([book])
        manifest["unit"] = data.sequence.unit
    if data.truth is not None:
        used = np.unique(data.truth.code)
        both = np.concatenate([data.truth.expected_loss[used], data.truth.logging[used]], axis=1)
        truth = pa.table(_columns(both, _truth_names(data.schema.n_actions)))
        files["truth.parquet"] = _parquet([truth])
    files |= beside or {}
    write_artifact(folder, files, manifest, manifest_name=MANIFEST, overwrite=overwrite)


def write_table(data: Trajectories, path: str | Path) -> None:
    """Write a long table that `read_table` reads back: .csv, .csv.gz or .parquet.

    Features stand as they are in memory: one column a level, one for each missingness mark. Read it
    back with `like=data.schema`.
    """
    path = Path(path)
    _require_distinct(data, path)
    name = path.name.lower()
    if name.endswith((".parquet", ".pq")):
        write_file(path, _parquet(_long(data)))
    elif name.endswith((".csv", ".csv.gz")):
        write_file(path, _csv(_long(data), packed=name.endswith(".gz")))
    else:
        raise FileError(str(path), "must end in .csv, .csv.gz or .parquet")


def _require_distinct(data: Trajectories, path: Path) -> None:
    if len(np.unique(data.stay)) != data.n_stays:
        raise FileError(str(path), "needs every stay once; these were drawn with repetition")


def _long(data: Trajectories) -> Iterator[pa.Table]:
    """The steps with their stay's static features and group repeated on every row."""
    stays = _stays(data).drop_columns([data.schema.roles.stay])
    stay, start = np.repeat(np.arange(data.n_stays), np.diff(data.offsets)), 0
    for part in _steps(data, plain=True):
        own = pa.array(stay[start : start + part.num_rows])
        for name in stays.column_names:
            part = part.append_column(name, stays.column(name).take(own))
        start += part.num_rows
        yield part


def _steps(data: Trajectories, *, plain: bool = False) -> Iterator[pa.Table]:
    """A row a step, a part at a time. `plain` expands a coded sequence and leaves the truth out."""
    roles, stay = data.schema.roles, np.repeat(np.arange(data.n_stays), np.diff(data.offsets))
    truth = None
    if data.truth is not None and not plain:
        truth = np.unique(data.truth.code, return_inverse=True)[1].astype(np.int32)
    for start in range(0, data.n_steps, _ROWS):
        rows = slice(start, min(start + _ROWS, data.n_steps))
        columns: dict[str, NDArray[Any] | pa.Array] = {
            roles.stay: pa.array(data.stay[stay[rows]]),
            roles.step: pa.array(data.step[rows]),
        }
        if isinstance(data.sequence, Coded) and not plain:
            columns[_CODE] = data.sequence.code[rows]
        else:
            columns |= _columns(data.sequence[rows], data.schema.sequence)
        for role in PER_STEP:
            values = getattr(data, role)
            if values is not None:
                missing = values[rows] == NO_ACTION if role == "action" else None
                column = pa.array(values[rows], mask=missing, from_pandas=role != "action")
                columns[getattr(roles, role)] = _as_read(data, role, column) if plain else column
        if truth is not None:
            columns[_TRUTH] = truth[rows]
        yield pa.table(columns)


def _stays(data: Trajectories) -> pa.Table:
    columns = {data.schema.roles.stay: pa.array(data.stay)}
    columns |= _columns(data.static, data.schema.static)
    if data.group is not None:
        columns[data.schema.roles.group] = pa.array(data.group)
    return pa.table(columns)


def _columns(matrix: NDArray[Any], names: tuple[str, ...]) -> dict[str, pa.Array]:
    """Columns of a matrix by name; NaN is a missing value, so it is written as null."""
    return {
        name: pa.array(np.ascontiguousarray(matrix[:, position]), from_pandas=True)
        for position, name in enumerate(names)
    }


def _as_read(data: Trajectories, role: str, column: pa.Array) -> pa.Array:
    """Actions and losses as the table had them that the data came from, so that `like` fits."""
    recipe = data.schema.recipe
    if recipe is None:
        return column
    dosed = recipe.doses and not data.schema.dosed_features
    if role == "action" and (recipe.action is not None or dosed):
        names = data.schema.actions
        if recipe.action is not None and len(recipe.action.columns) == 1:
            names = tuple(label for (label,) in recipe.action.labels)
        return pa.array(names).take(column)
    if role == "loss" and recipe.outcome.kind == "reward":
        best = 0.0 if recipe.outcome.rule == "minus" else 1.0
        return pa.array(best - np.asarray(column.to_numpy(zero_copy_only=False)), from_pandas=True)
    return column


def _truth_names(n_actions: int) -> tuple[str, ...]:
    kinds = ("expected_loss", "logging")
    return tuple(f"{kind}_{action}" for kind in kinds for action in range(n_actions))


def _parquet(tables: Iterable[pa.Table]) -> Content:
    def write(file: BinaryIO) -> None:
        parts = iter(tables)
        first = next(parts)
        with pq.ParquetWriter(file, first.schema, compression="zstd") as writer:
            for part in chain([first], parts):
                writer.write_table(part)

    return write


def _csv(parts: Iterator[pa.Table], *, packed: bool) -> Content:
    def write(file: BinaryIO) -> None:
        first = next(parts)
        with contextlib.ExitStack() as stack:
            stream: Any = file
            if packed:
                zipped = gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6, mtime=0)
                stream = stack.enter_context(zipped)
            writer = stack.enter_context(pa_csv.CSVWriter(stream, first.schema))
            for part in chain([first], parts):
                writer.write_table(part)

    return write


def load_trajectories(folder: str | Path) -> Trajectories:
    """Read a Trajectories folder; anything changed since it was written is refused by name."""
    folder = Path(folder)
    document = read_artifact(folder, manifest_name=MANIFEST)
    if document.get("format") != _FORMAT or document.get("version") != _VERSION:
        raise FileError(str(folder / MANIFEST), f"must be {_FORMAT}, version {_VERSION}")
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
        truth=_read_truth(folder, cells, schema.n_actions) if _TRUTH in present else None,
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
    code = cells.column(_CODE).to_numpy().astype(np.int32)
    return Coded(table, code, float(str(unit)))


def _read_truth(folder: Path, cells: pa.Table, n_actions: int) -> Truth:
    table = pq.read_table(folder / "truth.parquet")
    both = np.stack([table.column(name).to_numpy() for name in _truth_names(n_actions)], axis=1)
    code = cells.column(_TRUTH).to_numpy().astype(np.int32)
    return Truth(code, both[:, :n_actions], both[:, n_actions:])
