"""Random cohorts, as Trajectories and as the long tables they could have come from.

The long table is written here by a plain loop, so that it says what `etips.data` should understand
without asking `etips.data`.
"""

import hashlib
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from etips.data import Schema, Trajectories, Truth, read_table

ROLES = {"stay": "icustay", "step": "bloc", "action": "dose", "loss": "harm"}


@dataclass(frozen=True)
class Cohort:
    """How a random cohort looks; `make` draws it."""

    seed: int
    n_stays: int = 4
    longest: int = 5
    n_features: int = 2
    n_static: int = 1
    n_actions: int = 3
    lag: int = 1
    gaps: float = 0.2
    readmissions: bool = True
    text_ids: bool = False
    propensity: bool = True
    eligible: bool = False

    def make(self) -> Trajectories:
        rng = np.random.default_rng(self.seed)
        lengths = rng.integers(1, self.longest + 1, self.n_stays)
        lengths[-1] = self.longest
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        n = int(offsets[-1])
        known = rng.random(n) >= self.gaps
        known[-1] = True  # at least one decision, and it has a history
        action = np.where(known, rng.integers(0, self.n_actions, n), -1)
        loss = np.where(known, np.round(rng.random(n), 3), np.nan)
        ids = np.sort(rng.choice(10_000, self.n_stays, replace=False))
        group = rng.integers(0, max(self.n_stays // 2, 1), self.n_stays)
        skips = rng.integers(1, 3, n)
        step = np.concatenate([np.cumsum(part) for part in np.split(skips, offsets[1:-1])])
        return Trajectories(
            sequence=rng.normal(size=(n, self.n_features)).astype(np.float32),
            offsets=offsets,
            schema=Schema(
                sequence=tuple(f"vital{i}" for i in range(self.n_features)),
                static=tuple(f"fixed{i}" for i in range(self.n_static)),
                n_actions=self.n_actions,
                lag=self.lag,
            ),
            action=action,
            loss=loss,
            static=rng.normal(size=(self.n_stays, self.n_static)).astype(np.float32),
            propensity=np.where(known, rng.uniform(0.01, 1, n), np.nan)
            if self.propensity
            else None,
            eligible=(rng.random(n) < 0.8) | known if self.eligible else None,
            stay=np.array([f"s{i:05d}" for i in ids]) if self.text_ids else ids,
            step=step,
            group=group if self.readmissions else None,
        )


def with_truth(data: Trajectories, seed: int = 0) -> Trajectories:
    """The same stays with a truth of seven codes."""
    rng = np.random.default_rng(seed)
    logging = rng.dirichlet(np.ones(data.n_actions), 7)
    return replace(
        data,
        truth=Truth(
            code=rng.integers(0, 7, data.n_steps).astype(np.int32),
            expected_loss=rng.random((7, data.n_actions)),
            logging=logging,
        ),
    )


cohorts = st.builds(
    Cohort,
    seed=st.integers(0, 2**32 - 1),
    n_stays=st.integers(1, 6),
    longest=st.integers(2, 6),
    n_features=st.integers(1, 3),
    n_static=st.integers(0, 2),
    lag=st.sampled_from([0, 1]),
    gaps=st.sampled_from([0.0, 0.3, 0.9]),
    readmissions=st.booleans(),
    text_ids=st.booleans(),
    propensity=st.booleans(),
)
"""Small cohorts; call `make()` on one."""


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
