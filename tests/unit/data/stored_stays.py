"""Simulated stays to store, and whether two Trajectories are the same, for tests of the files."""

from dataclasses import replace

import numpy as np
from random_cohorts import Cohort

from etips.data import Coded, Schema, Trajectories, Truth

PER_STEP = (
    "action",
    "loss",
    "propensity",
    "eligible",
    "step",
    "stay",
    "group",
    "static",
    "offsets",
)


def same(first, second):
    assert first.schema == second.schema
    assert first.n_steps == second.n_steps
    assert np.array_equal(first.sequence[:], second.sequence[:], equal_nan=True)
    for name in PER_STEP:
        a, b = getattr(first, name), getattr(second, name)
        assert (a is None) == (b is None), name
        if a is not None:
            assert a.dtype == b.dtype, name
            assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), name


def simulated():
    rng = np.random.default_rng(0)
    data = Cohort(seed=7, n_stays=5, n_features=2).make()
    coded = Coded(
        rng.integers(0, 255, (9, 2)).astype(np.uint8),
        rng.integers(0, 9, data.n_steps).astype(np.int32),
        1 / 255,
    )
    truth = Truth(
        rng.integers(0, 50, data.n_steps).astype(np.int32),
        rng.random((50, data.n_actions)),
        rng.dirichlet(np.ones(data.n_actions), 50),
    )
    return replace(data, sequence=coded, truth=truth)


def coded_data():
    return Trajectories(
        sequence=Coded(np.arange(6, dtype=np.float32).reshape(3, 2), np.array([0, 1, 2, 1, 0, 2])),
        offsets=np.array([0, 2, 4, 6]),
        schema=Schema(sequence=("a", "b"), n_actions=2, lag=0),
        action=np.zeros(6, int),
        loss=np.zeros(6),
    )
