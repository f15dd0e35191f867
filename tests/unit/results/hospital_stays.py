"""A small hospital for the tests of exhibits: its stays, their log, a policy, and what is shown."""

import numpy as np

from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.evaluation.log import Log
from etips.results import assembly
from etips.results.records import to_json

DOSES = tuple(f"fluid {action // 2}, vasopressor {action % 2}" for action in range(4))


def hospital(n_stays=240, *, seed=0, rare=5, n_actions=4):
    """Stays with a category that `rare` people have, an age, gaps in a feature, one rare action."""
    rng = np.random.default_rng(seed)
    offsets = np.arange(n_stays + 1) * 3
    n_steps = int(offsets[-1])
    action = rng.integers(0, n_actions - 1, n_steps)
    action[:4] = n_actions - 1
    ward_of = np.where(np.arange(n_stays) < rare, 2, np.arange(n_stays) % 2)
    gone = rng.random(n_steps) < 0.2
    features = np.stack([rng.normal(size=n_steps), np.where(gone, np.nan, 1.0), gone], axis=1)
    schema = Schema(
        sequence=("hr", "lactate", "lactate_missing"),
        static=("age", "ward=icu", "ward=step-down", "ward=SECRET"),
        n_actions=n_actions,
        lag=0,
        actions=DOSES if n_actions == 4 else (),
        categories={"ward": ("icu", "step-down", "SECRET")},
        indicators=("lactate",),
        provenance={"source": "a test", "seed": "7"},
    )
    return Trajectories(
        sequence=features.astype(np.float32),
        offsets=offsets,
        schema=schema,
        action=action,
        loss=(rng.random(n_steps) < 0.4).astype(np.float64),
        static=np.column_stack([rng.uniform(20, 90, n_stays), np.eye(3)[ward_of]]).astype(
            np.float32
        ),
    )


def logged(data, *, full=True):
    n, k = data.n_decisions, data.n_actions
    chances = np.full((n, k), 1 / k)
    return Log(
        loss=data.logged_loss,
        action=data.logged_action,
        propensity=np.full(n, 1 / k),
        cluster=data.decisions().stay,
        n_actions=k,
        propensities=chances if full else None,
    )


def leaning(data, seed=1):
    """A policy that prefers action 0 and depends on nothing."""
    table = np.full((data.n_decisions, data.n_actions), 0.1)
    table[:, 0] = 1 - 0.1 * (data.n_actions - 1)
    return table


def make_exhibits(*args, **kwargs):
    """As JSON has them: what a reader of results.json sees."""
    return to_json(assembly.make_exhibits(*args, **kwargs))


def rows_of(found, feature):
    return next(table["rows"] for table in found["subgroups"] if table["feature"] == feature)
