"""Logs in which a loss may be missing, with the truth."""

from dataclasses import dataclass

import numpy as np

from etips.data.schema import Schema
from etips.data.trajectories import Trajectories


@dataclass(frozen=True)
class Missing:
    """Stays of one decision each.

    Args:
        data: The log, to be weighted.
        propensities: Known, shape (n, 3).
        policy: A good one, shape (n, 3).
        risk: Its true risk.
        gain: Its true risk minus the clinicians'.
    """

    data: Trajectories
    propensities: np.ndarray
    policy: np.ndarray
    risk: float
    gain: float


def make_missing(n, *, seed, kind="line", by_loss=0.0):
    """Whose loss is missing depends on what is visible and on the action, and `by_loss` on it."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(n, 4))
    powers = np.exp(0.5 * x @ np.array([[1, 0, -1], [-0.5, 1, 0], [0.3, -0.3, 0.6], [0, 0, 0]]))
    chance = powers / powers.sum(axis=1, keepdims=True)
    action = (chance.cumsum(axis=1) > generator.random((n, 1))).argmax(axis=1)
    effect = np.array([-0.6, 0.0, 0.6]) * (1 + 0.5 * x[:, [1]])
    model = 1 / (1 + np.exp(-(1.2 * x[:, [0]] - 0.3 + effect)))
    loss = (generator.random(n) < model[np.arange(n), action]).astype(float)
    hides = {
        "line": 1.0 * x[:, 0] + 0.8 * (action == 0) - 0.4,
        "product": 1.2 * x[:, 0] * x[:, 1] + 0.8 * x[:, 0] * ((action == 0) - 1.0 * (action == 2)),
    }[kind]
    seen = generator.random(n) < 1 / (1 + np.exp(hides + by_loss * (loss - 0.5) - 0.6))
    data = Trajectories(
        sequence=x.astype(np.float32),
        offsets=np.arange(n + 1),
        schema=Schema(sequence=("lactate", "SOFA", "age", "weight"), n_actions=3, lag=0),
        action=action,
        loss=np.where(seen, loss, np.nan),
        missing_loss="weight",
    )
    policy = np.eye(3)[model.argmin(axis=1)]
    risk = float((policy * model).sum(axis=1).mean())
    return Missing(data, chance, policy, risk, risk - float((chance * model).sum(axis=1).mean()))
