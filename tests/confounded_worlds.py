"""Null worlds in which clinicians act on what is visible: linear, squared, in a product."""

from dataclasses import dataclass

import numpy as np

from etips.data.schema import Schema
from etips.data.trajectories import Trajectories

KINDS = ("linear", "square", "product")


@dataclass(frozen=True)
class Confounded:
    """Decisions whose action and loss follow one severity, so that no action matters."""

    x: np.ndarray
    action: np.ndarray
    loss: np.ndarray
    cluster: np.ndarray
    right: np.ndarray  # the propensities
    risk: np.ndarray  # of every decision, whatever the action


def confounded(kind: str, *, n_stays: int, seed: int, strength: float = 0.9) -> Confounded:
    """One to four decisions a stay, five features, three actions."""
    rng = np.random.default_rng([93, seed])
    cluster = np.repeat(np.arange(n_stays), rng.integers(1, 5, n_stays))
    x = rng.normal(size=(len(cluster), 5))
    forms = {"linear": x[:, 0], "square": x[:, 0] ** 2 - 1, "product": x[:, 0] * x[:, 1]}
    severity = forms[kind]
    score = np.stack([strength * severity, 0 * severity, 0.6 * x[:, 2]], axis=1)
    right = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
    action = (rng.random(len(x))[:, None] > right.cumsum(axis=1)).sum(axis=1).clip(max=2)
    risk = 1 / (1 + np.exp(0.5 - 1.2 * severity))
    loss = (rng.random(len(x)) < risk).astype(float)
    return Confounded(x, action, loss, cluster, right, risk)


def marginal(world: Confounded) -> np.ndarray:
    """Propensities that ignore everything: how often each action was taken."""
    share = np.bincount(world.action, minlength=3) / len(world.action)
    return np.tile(share, (len(world.action), 1))


def stays_of(world: Confounded) -> Trajectories:
    """The decisions of a world as stays."""
    return Trajectories(
        sequence=world.x.astype(np.float32),
        offsets=np.concatenate([[0], np.cumsum(np.bincount(world.cluster))]),
        schema=Schema(sequence=("a", "b", "c", "d", "e"), n_actions=3, lag=0),
        action=world.action,
        loss=world.loss,
    )
