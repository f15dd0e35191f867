"""The long tables that random cohorts could have come from, and other tables.

The long table is written here by a plain loop, so that it says what `etips.data` should understand
without asking `etips.data`.
"""

import hashlib

import numpy as np
import pyarrow as pa

from etips.data import Trajectories, read_table

ROLES = {"stay": "icustay", "step": "bloc", "action": "dose", "loss": "harm"}


def long_table(data: Trajectories) -> pa.Table:
    """The long table these stays could have been read from, one row a step, by a plain loop."""
    columns: dict[str, list[object]] = {name: [] for name in ROLES.values()}
    for name in (*data.schema.sequence, *data.schema.static):
        columns[name] = []
    if data.propensity is not None:
        columns["chance"] = []
    if data.group is not None:
        columns["patient"] = []
    for stay in range(data.n_stays):
        for row in range(int(data.offsets[stay]), int(data.offsets[stay + 1])):
            columns["icustay"].append(data.stay[stay].item())
            columns["bloc"].append(data.step[row].item())
            columns["dose"].append(None if data.action[row] < 0 else int(data.action[row]))
            columns["harm"].append(None if np.isnan(data.loss[row]) else float(data.loss[row]))
            for i, name in enumerate(data.schema.sequence):
                columns[name].append(float(data.sequence[row, i]))
            for i, name in enumerate(data.schema.static):
                columns[name].append(float(data.static[stay, i]))
            if data.propensity is not None:
                chance = float(data.propensity[row])
                columns["chance"].append(None if np.isnan(chance) else chance)
            if data.group is not None:
                columns["patient"].append(int(data.group[stay]))
    return pa.table(columns)


def roles_of(data: Trajectories) -> dict[str, object]:
    """The arguments that make `read_table` understand `long_table(data)`."""
    return {
        **ROLES,
        "static": data.schema.static,
        "propensity": None if data.propensity is None else "chance",
        "group": None if data.group is None else "patient",
        "lag": data.lag,
        "n_actions": data.n_actions,
    }


def fingerprint(data: Trajectories) -> str:
    """A hash of everything that decisions, histories and their log consist of."""
    digest = hashlib.sha256()
    stay, step = data.decisions()
    histories = data.histories()
    for part in (
        data.stay[stay].astype(str),
        data.step[data.offsets[stay] + step].astype(np.int64) if data.logged else step,
        data.logged_action,
        data.logged_loss,
        np.zeros(0) if data.propensity is None else data.logged_propensity,
        np.zeros(0) if data.group is None else data.group.astype(np.int64),
        data.offsets,
        data.sequence[:],
        data.static,
        histories.sequence,
        histories.lengths,
    ):
        digest.update(str((part.dtype.kind, part.shape)).encode())
        digest.update(
            "\n".join(part.tolist()).encode() if part.dtype.kind == "U" else part.tobytes()
        )
    return digest.hexdigest()


def refusal_text(error: BaseException) -> str:
    """Everything a user sees of an exception: itself and the chain that is printed with it."""
    seen, texts = set(), []
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        texts.append(f"{type(error).__name__}: {error}")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n".join(texts)


COLUMNS = {"stay": "s", "step": "t", "action": "a", "loss": "l"}
"""Roles of `small_table`."""

CANARY, TEXT = 913_572_468, "kanarienvogel"
"""Values that stand in a table and must not stand in a refusal."""


def small_table(**changes: object) -> pa.Table:
    """Six rows of two stays; `changes` replace or add columns, None drops one."""
    columns = {
        "s": [1, 1, 1, 2, 2, 2],
        "t": [0, 1, 2, 0, 1, 2],
        "a": [0, 1, 2, 0, 1, 2],
        "l": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
        "x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    }
    columns |= changes
    return pa.table({name: values for name, values in columns.items() if values is not None})


def read_small(table: object = None, **options: object) -> Trajectories:
    """Read `small_table()` or one like it."""
    return read_table(small_table() if table is None else table, **{**COLUMNS, **options})
