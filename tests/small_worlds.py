"""Logs small enough to learn from in a blink, learners to match, and how to forge a policy."""

import hashlib
import json

import numpy as np
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.files.artifacts import seal
from etips.files.json_documents import canonical
from etips.learn import (
    EIPS,
    IPS,
    OWL,
    POEM,
    RWL,
    TIPS,
    AIClinician,
    BanditNet,
    BetaIPS,
    DirectMethod,
    DoublyRobust,
    EtIPS,
    LoggingPolicy,
    LogSumExp,
    MostFrequent,
    NormPOEM,
    PredictiveModel,
    QLearning,
    RandomPolicy,
    Settings,
    StayDirectMethod,
    Training,
)
from etips.models.encoders.gru import GRU
from etips.worlds.clinic import Clinic

CLINIC = Clinic(n_contexts=20, n_features=3, n_actions=3, decisions_per_stay=3)
CLEAR = Clinic(n_contexts=30, n_features=3, n_actions=3, decisions_per_stay=3, effect=0.9)
"""True risk 0.47 for the clinicians, 0.37 for the best policy."""


def training(epochs=2, n_folds=2, **more):
    """Short training on the CPU."""
    settings = Settings(epochs=epochs, batch_size=64, learning_rate=0.02)
    stages = {"propensity": settings, "outcome": settings, "policy": settings}
    return Training(**{"n_folds": n_folds, "device": "cpu", **stages, **more})


def small(seed=0, **more):
    """Arguments that every network learner takes."""
    return {"encoder": GRU(6), "training": training(), "seed": seed} | more


NETWORKS = {
    "EtIPS": lambda seed=0, **more: EtIPS(**small(seed, translations=(0.3, 0.7), **more)),
    "TIPS": lambda seed=0, **more: TIPS(**small(seed, translations=(0.3, 0.7), **more)),
    "EIPS": lambda seed=0, **more: EIPS(**small(seed, **more)),
    "IPS": lambda seed=0, **more: IPS(**small(seed, **more)),
    "BanditNet": lambda seed=0, **more: BanditNet(**small(seed, translations=(0.7,), **more)),
    "POEM, networks": lambda seed=0, **more: POEM(**small(seed, **more)),
    "DirectMethod": lambda seed=0, **more: DirectMethod(**small(seed, **more)),
    "additive DirectMethod": lambda seed=0, **more: DirectMethod(
        interaction=False, **small(seed, **more)
    ),
    "StayDirectMethod": lambda seed=0, **more: StayDirectMethod(**small(seed, **more)),
    "BetaIPS": lambda seed=0, **more: BetaIPS(**small(seed, **more)),
    "LogSumExp": lambda seed=0, **more: LogSumExp(**small(seed, **more)),
    "DoublyRobust": lambda seed=0, **more: DoublyRobust(**small(seed, **more)),
    "PredictiveModel": lambda seed=0, **more: PredictiveModel(**small(seed, **more)),
}
"""Makers of everything that trains networks."""

ROWS = {
    "QLearning": lambda seed=0, **more: QLearning(seed=seed, **more),
    "OWL": lambda seed=0, **more: OWL(ridge=0.1, seed=seed, **more),
    "OWL, rbf": lambda seed=0, **more: OWL(kernel="rbf", ridge=0.1, n_waves=20, seed=seed, **more),
    "RWL": lambda seed=0, **more: RWL(ridge=0.1, seed=seed, **more),
    "POEM": lambda seed=0, **more: POEM(penalty=1.0, seed=seed, **more),
    "NormPOEM": lambda seed=0, **more: NormPOEM(penalty=1.0, seed=seed, **more),
    "AIClinician": lambda seed=0, **more: AIClinician(n_states=3, seed=seed, **more),
}
"""Makers of everything that reads one row a decision."""

LEARNERS = {
    **NETWORKS,
    **ROWS,
    "RandomPolicy": lambda seed=0: RandomPolicy(seed=seed),
    "MostFrequent": lambda seed=0: MostFrequent(),
}
"""Makers of every learner of the contract."""


def gain_in_a_clear_world(learner):
    """True risk by which a learner beats the clinicians of `CLEAR`."""
    train, test = CLEAR.log(500, seed=0), CLEAR.log(200, seed=1)
    clinicians = test.true_risk(LoggingPolicy().fit(test).predict_proba(test))
    return clinicians - test.true_risk(learner.fit(train).predict_proba(test))


def ward(n_stays=40, lag=1, n_actions=3, seed=0):
    """A log with stays of one to six steps, gaps between decisions, static features, patients."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 7, n_stays)
    lengths[:3] = (1, 6, 2)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    n_steps = offsets[-1]
    action = rng.integers(0, n_actions, n_steps)
    loss = (rng.random(n_steps) < 0.3 + 0.3 * (action == 0)).astype(np.float64)
    loss[rng.random(n_steps) < 0.1] = np.nan
    return Trajectories(
        sequence=rng.normal(size=(n_steps, 4)).astype(np.float32),
        offsets=offsets,
        schema=Schema(
            sequence=("hr", "map", "lactate", "flat"),
            static=("age", "weight"),
            n_actions=n_actions,
            lag=lag,
        ),
        action=action,
        loss=loss,
        static=rng.normal(size=(n_stays, 2)).astype(np.float32),
        propensity=np.full(n_steps, 1 / n_actions),
        stay=np.array([f"stay {i:03}" for i in range(n_stays)]),
    )


def randomised(n_stays, n_actions, *, n_steps=1, risk=0.5, seed=0):
    """A log whose actions were drawn alike for everybody, and change nothing."""
    rng = np.random.default_rng(seed)
    n = n_stays * n_steps
    return Trajectories(
        sequence=rng.normal(size=(n, 4)).astype(np.float32),
        offsets=np.arange(n_stays + 1) * n_steps,
        schema=Schema(sequence=("a", "b", "c", "d"), n_actions=n_actions, lag=0),
        action=rng.integers(0, n_actions, n),
        loss=(rng.random(n) < risk).astype(np.float64),
    )


def manifest_of(folder):
    return json.loads((folder / "policy.json").read_bytes())


def reseal(folder, change=None, weights=None, file="weights.safetensors"):
    """Change a saved policy as a forger would: every checksum fits again.

    `change` alters the manifest in place, `weights` maps tensors of `file` to tensors or bytes.
    """
    document = manifest_of(folder)
    document.pop("seal")
    path = folder / file
    if weights is not None:
        found = weights(load_tensors(path.read_bytes()))
        path.write_bytes(found if isinstance(found, bytes) else save_tensors(found))
        raw = path.read_bytes()
        checksum = {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
        document["files"][path.name] = checksum
    if change is not None:
        change(document)
    (folder / "policy.json").write_bytes(canonical(seal(document)))


class Says:
    """A propensity model with a fixed, perhaps foolish, answer."""

    def __init__(self, answer):
        self.answer = answer

    def fit(self, data):
        return self

    def predict_proba(self, data):
        return self.answer(data.n_decisions, data.n_actions)
