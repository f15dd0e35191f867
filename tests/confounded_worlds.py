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


def linear_logit(world: Confounded, n_steps: int = 200) -> np.ndarray:
    """Propensities of a multinomial logit in the features as they are."""
    rows = np.column_stack([np.ones(len(world.x)), world.x])
    theta, taken = np.zeros((rows.shape[1], 3)), np.eye(3)[world.action]
    for _ in range(n_steps):
        score = rows @ theta
        table = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
        theta += 1.5 * rows.T @ (taken - table) / len(rows)
    return table


def regressed_prognosis(world: Confounded) -> np.ndarray:
    """Expected loss by cross-fitted least squares on features, squares and products."""
    first, second = np.triu_indices(world.x.shape[1])
    products = world.x[:, first] * world.x[:, second]
    rows = np.column_stack([np.ones(len(world.x)), world.x, products])
    outlook = np.empty(len(rows))
    for part in range(3):
        inside = world.cluster % 3 == part
        fit = np.linalg.lstsq(rows[~inside], world.loss[~inside], rcond=None)[0]
        outlook[inside] = rows[inside] @ fit
    return outlook


def snips_bias(world: Confounded, table: np.ndarray) -> float:
    """Self-normalised risk of giving everybody action 0, less the truth."""
    weight = (world.action == 0) / np.maximum(table[:, 0], 0.01)
    return float(weight @ world.loss / weight.sum() - world.risk.mean())


def stays_of(world: Confounded) -> Trajectories:
    """The decisions of a world as stays."""
    return Trajectories(
        sequence=world.x.astype(np.float32),
        offsets=np.concatenate([[0], np.cumsum(np.bincount(world.cluster))]),
        schema=Schema(sequence=("a", "b", "c", "d", "e"), n_actions=3, lag=0),
        action=world.action,
        loss=world.loss,
    )
