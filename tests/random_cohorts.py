"""Random cohorts as Trajectories: where torch is, but no pyarrow."""

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from etips.data.schema import Schema
from etips.data.trajectories import Trajectories, Truth


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
