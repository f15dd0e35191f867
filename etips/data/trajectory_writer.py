"""Trajectories folders and tables as they are written: Parquet, sealed by a manifest.

`steps.parquet` holds a row a step, `stays.parquet` a row a stay, `schema.json` names, roles and
checksums. A coded sequence adds `codebook.parquet`, simulated data `truth.parquet`.
"""

import contextlib
import gzip
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from etips.data.coded import Coded, Features, Floats32, Truth
from etips.data.decisions import NO_ACTION, PER_STEP, Ints, MissingLoss
from etips.data.schema import Schema
from etips.errors import FileError
from etips.files.artifacts import write_artifact
from etips.files.writing import Content, write_file

MANIFEST = "schema.json"
FORMAT, VERSION = "etips/trajectories", 1
CODE, TRUTH = "__code__", "__truth__"
"""Columns of steps.parquet beside the user's own."""

_ROWS = 131_072  # rows written together


class StayArrays(Protocol):
    """What is written of `Trajectories`, which stands above: it saves itself."""

    @property
    def schema(self) -> Schema: ...  # noqa: D102
    @property
    def offsets(self) -> Ints: ...  # noqa: D102
    @property
    def static(self) -> Floats32: ...  # noqa: D102
    @property
    def stay(self) -> NDArray[Any]: ...  # noqa: D102
    @property
    def step(self) -> NDArray[Any]: ...  # noqa: D102
    @property
    def sequence(self) -> Features: ...  # noqa: D102
    @property
    def action(self) -> Ints | None: ...  # noqa: D102
    @property
    def group(self) -> NDArray[Any] | None: ...  # noqa: D102
    @property
    def truth(self) -> Truth | None: ...  # noqa: D102
    @property
    def missing_loss(self) -> MissingLoss: ...  # noqa: D102
    @property
    def n_stays(self) -> int: ...  # noqa: D102
    @property
    def n_steps(self) -> int: ...  # noqa: D102


def save_trajectories(
    data: StayArrays,
    folder: Path,
    *,
    overwrite: bool = False,
    beside: Mapping[str, Content] | None = None,
) -> None:
    """Write a Trajectories folder; it appears whole or not at all."""
    _require_distinct(data, folder)
    files: dict[str, Content] = {
        "steps.parquet": _parquet(_steps(data)),
        "stays.parquet": _parquet(iter([_stays(data)])),
    }
    manifest: dict[str, object] = {
        "format": FORMAT,
        "version": VERSION,
        "schema": data.schema.to_json(),
        "logged": data.action is not None,
    }
    if data.missing_loss != "drop":
        manifest["missing_loss"] = data.missing_loss
    if isinstance(data.sequence, Coded):
        table = data.sequence.table
        files["codebook.parquet"] = _parquet(
            iter([pa.table(_columns(table, data.schema.sequence))])
        )
        manifest["unit"] = data.sequence.unit
    if data.truth is not None:
        used, _ = _used(data.truth)
        both = np.concatenate([data.truth.expected_loss[used], data.truth.logging[used]], axis=1)
        files["truth.parquet"] = _parquet(
            iter([pa.table(_columns(both, truth_names(data.schema.n_actions)))])
        )
    files |= beside or {}
    write_artifact(folder, files, manifest, manifest_name=MANIFEST, overwrite=overwrite)


def write_table(data: StayArrays, path: str | Path) -> None:
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
        write_file(path, lambda file: _csv(file, _long(data), packed=True))
    else:
        raise FileError(str(path), "must end in .csv, .csv.gz or .parquet")


def _require_distinct(data: StayArrays, path: Path) -> None:
    if len(np.unique(data.stay)) != data.n_stays:
        raise FileError(str(path), "needs every stay once; these were drawn with repetition")


def _long(data: StayArrays) -> Iterator[pa.Table]:
    """The steps with their stay's static features and group repeated on every row."""
    stays = _stays(data).drop_columns([data.schema.roles.stay])
    stay, start = _stay_of(data), 0
    for part in _steps(data, plain=True):
        own = pa.array(stay[start : start + part.num_rows])
        for name in stays.column_names:
            part = part.append_column(name, stays.column(name).take(own))
        start += part.num_rows
        yield part


def _steps(data: StayArrays, *, plain: bool = False) -> Iterator[pa.Table]:
    """A row a step, a part at a time. `plain` expands a coded sequence and leaves the truth out."""
    roles, stay = data.schema.roles, _stay_of(data)
    truth_code = None if data.truth is None or plain else _used(data.truth)[1]
    for start in range(0, data.n_steps, _ROWS):
        rows = slice(start, min(start + _ROWS, data.n_steps))
        columns: dict[str, NDArray[Any] | pa.Array] = {
            roles.stay: pa.array(data.stay[stay[rows]]),
            roles.step: pa.array(data.step[rows]),
        }
        if isinstance(data.sequence, Coded) and not plain:
            columns[CODE] = data.sequence.code[rows]
        else:
            columns |= _columns(data.sequence[rows], data.schema.sequence)
        for role in PER_STEP:
            values = getattr(data, role)
            if values is not None:
                missing = values[rows] == NO_ACTION if role == "action" else None
                column = pa.array(values[rows], mask=missing, from_pandas=role != "action")
                columns[getattr(roles, role)] = _as_read(data, role, column) if plain else column
        if truth_code is not None:
            columns[TRUTH] = truth_code[rows]
        yield pa.table(columns)


def _stays(data: StayArrays) -> pa.Table:
    columns = {data.schema.roles.stay: pa.array(data.stay)}
    columns |= _columns(data.static, data.schema.static)
    if data.group is not None:
        columns[data.schema.roles.group] = pa.array(data.group)
    return pa.table(columns)


def _stay_of(data: StayArrays) -> NDArray[np.int64]:
    return np.repeat(np.arange(data.n_stays), np.diff(data.offsets))


def _columns(matrix: NDArray[Any], names: tuple[str, ...]) -> dict[str, pa.Array]:
    """Columns of a matrix by name; NaN is a missing value, so it is written as null."""
    columns = {}
    for position, name in enumerate(names):
        values = np.ascontiguousarray(matrix[:, position])
        columns[name] = pa.array(values, from_pandas=True)
    return columns


def _as_read(data: StayArrays, role: str, column: pa.Array) -> pa.Array:
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
        turned = 0.0 if recipe.outcome.rule == "minus" else 1.0
        return pa.array(
            turned - np.asarray(column.to_numpy(zero_copy_only=False)), from_pandas=True
        )
    return column


def _used(truth: Truth) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The rows of the truth that occur, and each step's place among them."""
    used, code = np.unique(truth.code, return_inverse=True)
    return used, code.astype(np.int32)


def truth_names(n_actions: int) -> tuple[str, ...]:
    """Columns of truth.parquet."""
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


def _csv(file: BinaryIO, parts: Iterator[pa.Table], *, packed: bool = False) -> None:
    first = next(parts)
    zipped = gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6, mtime=0) if packed else None
    with contextlib.ExitStack() as stack:
        stream = file if zipped is None else stack.enter_context(zipped)
        writer = stack.enter_context(pa_csv.CSVWriter(stream, first.schema))
        writer.write_table(first)
        for part in parts:
            writer.write_table(part)
