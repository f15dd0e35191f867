"""Trajectories folders and written tables: Parquet in, Parquet out, sealed by a manifest.

`steps.parquet` holds a row a step, `stays.parquet` a row a stay, `schema.json` names, roles and
checksums. A coded sequence adds `codebook.parquet`, simulated data `truth.parquet`.
"""

import gzip
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from etips.data.coded import Coded, Features, Floats32
from etips.data.schema import Schema
from etips.data.tables.columns import fill_rows
from etips.data.trajectories import NO_ACTION, Trajectories, Truth
from etips.errors import EtipsError, FileError
from etips.files.writing import Content, read_artifact, write_artifact, write_file

MANIFEST = "schema.json"
_FORMAT, _VERSION = "etips/trajectories", 1
_CODE, _TRUTH = "__code__", "__truth__"  # columns of steps.parquet beside the user's own
_ROWS = 131_072  # rows written together
_PER_STEP = ("action", "loss", "propensity", "eligible")


def save_trajectories(
    data: Trajectories,
    folder: Path,
    *,
    overwrite: bool = False,
    beside: Mapping[str, Content] | None = None,
) -> None:
    """Write a Trajectories folder; it appears whole or not at all.

    Args:
        data: What to write.
        folder: Where.
        overwrite: Replace an earlier one.
        beside: Further files by name, sealed with the rest: what a cohort says about itself, say.
    """
    _require_distinct(data, folder)
    files: dict[str, Content] = {
        "steps.parquet": _parquet(_steps(data)),
        "stays.parquet": _parquet(iter([_stays(data)])),
    }
    manifest: dict[str, object] = {
        "format": _FORMAT,
        "version": _VERSION,
        "schema": data.schema.to_json(),
        "logged": data.logged,
    }
    if isinstance(data.sequence, Coded):
        table = data.sequence.table
        files["codebook.parquet"] = _parquet(iter([_matrix(table, data.schema.sequence)]))
        manifest["unit"] = data.sequence.unit
    if data.truth is not None:
        used, _ = _used(data.truth)
        both = np.concatenate([data.truth.expected_loss[used], data.truth.logging[used]], axis=1)
        files["truth.parquet"] = _parquet(iter([_matrix(both, _truth_names(data.n_actions))]))
    files |= beside or {}
    write_artifact(folder, files, manifest, manifest_name=MANIFEST, overwrite=overwrite)


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


def write_table(data: Trajectories, path: str | Path) -> None:
    """Write a long table that `read_table` reads back: .csv, .csv.gz or .parquet.

    Features stand as they are in memory: one column a level, one for each missingness mark. Read it
    back with `like=data.schema`.
    """
    path = Path(path)
    _require_distinct(data, path)
    kind = path.name.lower()
    if kind.endswith((".parquet", ".pq")):
        write_file(path, _parquet(_long(data)))
    elif kind.endswith(".csv"):
        write_file(path, lambda file: _csv(file, _long(data)))
    elif kind.endswith(".csv.gz"):
        write_file(path, lambda file: _csv_gz(file, _long(data)))
    else:
        raise FileError(str(path), "must end in .csv, .csv.gz or .parquet")


def _require_distinct(data: Trajectories, path: Path) -> None:
    if len(np.unique(data.stay)) != data.n_stays:
        raise FileError(str(path), "needs every stay once; these were drawn with repetition")


def _long(data: Trajectories) -> Iterator[pa.Table]:
    """The steps with their stay's static features and group repeated on every row."""
    stays = _stays(data).drop_columns([data.schema.roles.stay])
    for part, stay in zip(_steps(data, plain=True), _chunks(_stay_of(data)), strict=True):
        for name in stays.column_names:
            part = part.append_column(name, stays.column(name).take(pa.array(stay)))
        yield part


def _steps(data: Trajectories, *, plain: bool = False) -> Iterator[pa.Table]:
    """A row a step, a part at a time. `plain` expands a coded sequence and leaves the truth out."""
    roles, stay = data.schema.roles, _stay_of(data)
    truth_code = None if data.truth is None or plain else _used(data.truth)[1]
    for start in range(0, data.n_steps, _ROWS):
        rows = slice(start, min(start + _ROWS, data.n_steps))
        columns: dict[str, Any] = {
            roles.stay: pa.array(data.stay[stay[rows]]),
            roles.step: pa.array(data.step[rows]),
        }
        if isinstance(data.sequence, Coded) and not plain:
            columns[_CODE] = data.sequence.code[rows]
        else:
            columns |= _columns(data.sequence[rows], data.schema.sequence)
        for role in _PER_STEP:
            values = getattr(data, role)
            if values is not None:
                columns[getattr(roles, role)] = _nullable(role, values[rows])
        if truth_code is not None:
            columns[_TRUTH] = truth_code[rows]
        yield pa.table(columns)


def _stays(data: Trajectories) -> pa.Table:
    columns = {data.schema.roles.stay: pa.array(data.stay)}
    columns |= _columns(data.static, data.schema.static)
    if data.group is not None:
        columns[data.schema.roles.group] = pa.array(data.group)
    return pa.table(columns)


def _stay_of(data: Trajectories) -> NDArray[np.int64]:
    return np.repeat(np.arange(data.n_stays), np.diff(data.offsets))


def _chunks(values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    return (values[start : start + _ROWS] for start in range(0, len(values), _ROWS))


def _columns(matrix: NDArray[Any], names: tuple[str, ...]) -> dict[str, pa.Array]:
    """Columns of a matrix by name; NaN is a missing value, so it is written as null."""
    found = {}
    for position, name in enumerate(names):
        values = np.ascontiguousarray(matrix[:, position])
        found[name] = pa.array(values, from_pandas=True)
    return found


def _matrix(matrix: NDArray[Any], names: tuple[str, ...]) -> pa.Table:
    return pa.table(_columns(matrix, names))


def _nullable(role: str, values: NDArray[Any]) -> pa.Array:
    if role == "action":
        return pa.array(values, mask=values == NO_ACTION)
    return pa.array(values, from_pandas=True)


def _used(truth: Truth) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The rows of the truth that occur, and each step's place among them."""
    used, code = np.unique(truth.code, return_inverse=True)
    return used, code.astype(np.int32)


def _truth_names(n_actions: int) -> tuple[str, ...]:
    kinds = ("expected_loss", "logging")
    return tuple(f"{kind}_{action}" for kind in kinds for action in range(n_actions))


def _parquet(parts: Iterator[pa.Table]) -> Content:
    def write(file: BinaryIO) -> None:
        first = next(parts)
        with pq.ParquetWriter(file, first.schema, compression="zstd") as writer:
            writer.write_table(first)
            for part in parts:
                writer.write_table(part)

    return write


def _csv(file: BinaryIO | gzip.GzipFile, parts: Iterator[pa.Table]) -> None:
    first = next(parts)
    with pa_csv.CSVWriter(file, first.schema) as writer:
        writer.write_table(first)
        for part in parts:
            writer.write_table(part)


def _csv_gz(file: BinaryIO, parts: Iterator[pa.Table]) -> None:
    with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6, mtime=0) as stream:
        _csv(stream, parts)


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
        for role in _PER_STEP
        if document["logged"] and getattr(roles, role) in present
    }
    identifiers = _labels(stays.column(roles.stay))
    return Trajectories(
        sequence=sequence,
        offsets=_offsets(_labels(cells.column(roles.stay)), identifiers),
        schema=schema,
        static=_read_matrix_of(stays, schema.static),
        stay=identifiers,
        step=cells.column(roles.step).to_numpy(),
        group=_labels(stays.column(roles.group)) if roles.group in stays.column_names else None,
        truth=_read_truth(folder, cells, schema.n_actions) if _TRUTH in present else None,
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
    found = np.empty((file.metadata.num_rows, len(names)), np.float32)
    if not names:
        return found
    start = 0
    for group in range(file.num_row_groups):
        part = file.read_row_group(group, columns=list(names))
        fill_rows(found[start : start + part.num_rows], [part.column(name) for name in names])
        start += part.num_rows
    return found


def _read_matrix_of(table: pa.Table, names: tuple[str, ...]) -> Floats32:
    found = np.empty((table.num_rows, len(names)), np.float32)
    fill_rows(found, [table.column(name) for name in names])
    return found


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
