"""Six more worlds, written after the code that they were first run with.

`benchmarks.curved --worlds later-...` takes them; the summary of its other worlds leaves them out.
"""

from collections.abc import Mapping

import numpy as np
from numpy.random import Generator

from benchmarks.curved_worlds import (
    Drawn,
    Stays,
    World,
    decided_last,
    history,
    last_of,
    logistic,
    softmax,
    two_actions,
)


def waves(rng: Generator, n: int) -> Drawn:
    """The better of two arms by a wave along a sum of features; noise of one size, up or down."""
    x = rng.normal(size=(n, 7))
    wave = np.sin(2.2 * (x[:, 0] + 0.6 * x[:, 1]))
    risk = logistic(np.stack([-0.4 + 0.8 * x[:, 2], -0.4 + 0.8 * x[:, 2] - 1.6 * wave], axis=1))
    chance = two_actions(logistic(0.9 * x[:, 2] + 0.4 * x[:, 3]))
    return Drawn(Stays.rows(x), chance, risk, 0.45 * rng.choice([-1.0, 1.0], n))


def dose(rng: Generator, n: int) -> Drawn:
    """Eight doses; the best one by a kinked function, the loss by the squared distance from it."""
    x = rng.uniform(-1, 1, (n, 8))
    best = 3.5 + 2.5 * np.abs(x[:, 0]) * np.sign(x[:, 1]) + 1.5 * x[:, 2]
    doses = np.arange(8)
    mean = 0.12 * (doses - best[:, None]) ** 2 + 0.5 * x[:, 3:4]
    habit = 3.5 + 1.5 * x[:, 3] + x[:, 2]
    chance = softmax(-0.35 * (doses - habit[:, None]) ** 2)
    return Drawn(Stays.rows(x), 0.04 + 0.68 * chance, mean, rng.normal(size=n))


def two_kinds(rng: Generator, n: int) -> Drawn:
    """The best of three arms by two categories together; the noise depends on the patient."""
    first, second = rng.integers(0, 4, n), rng.integers(0, 5, n)
    best = (first * 2 + second * second) % 3
    x = rng.normal(size=(n, 3))
    mean = 0.5 * x[:, :1] + 0.2 * first[:, None] - 0.7 * np.eye(3)[best]
    chance = softmax(np.stack([0.3 * first, 0.3 * second - 0.3, 0.6 * x[:, 0] + 0.4], axis=1))
    noise = (0.5 + 0.5 * np.abs(x[:, 1])) * (rng.exponential(size=n) - 1)
    codes = np.stack([first, second], axis=1).astype(np.float64)
    return Drawn(Stays.rows(np.hstack([codes, x])), chance, mean, noise)


def counted(rng: Generator, n: int) -> Drawn:
    """The best of three arms by how often a value was high so far; three to seven steps."""
    features, lengths = history(rng, n, (3, 7), 4)
    inside = np.arange(7) < lengths[:, None]
    often = ((features[:, :, 1] > 0.7) & inside).sum(axis=1)
    newest = last_of(features, lengths)
    mean = 0.5 * newest[:, :1] - 0.9 * np.eye(3)[np.digitize(often, [1, 2])]
    chance = softmax(np.stack([0.7 * newest[:, 0], 0.5 * newest[:, 1], 0 * often], axis=1))
    return Drawn(decided_last(features, lengths), chance, mean, rng.normal(size=n))


def good_by_points(rng: Generator, n: int) -> Drawn:
    """Clinicians count points, as the truth does, and treat from three on; nine of ten times."""
    x = rng.normal(size=(n, 8))
    points = (x[:, 0] > 0).astype(int) + (x[:, 1] > 0.5) + (np.abs(x[:, 2]) > 0.8) + (x[:, 3] < 0)
    treat = points >= 3
    helps = np.where(treat, 0.8, -0.5)
    base = 0.7 * x[:, 4] + 0.2 * points
    chance = two_actions(np.where(treat, 0.9, 0.1))
    return Drawn(Stays.rows(x), chance, np.stack([base, base - helps], axis=1), rng.normal(size=n))


def good_by_likeness(rng: Generator, n: int) -> Drawn:
    """Four arms, each best near its own typical patient; clinicians go by likeness too."""
    x = rng.normal(size=(n, 6))
    typical = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.2, -0.6]])
    far = np.sqrt(((x[:, None, :2] - typical) ** 2).sum(axis=2))
    mean = 0.7 * far + 0.4 * x[:, 2:3]
    chance = 0.02 + 0.92 * softmax(-3 * far)
    return Drawn(Stays.rows(x), chance, mean, 0.8 * rng.normal(size=n))


_ALL = (
    World("later-waves", waves),
    World("later-dose", dose),
    World("later-two-kinds", two_kinds),
    World("later-counted", counted),
    World("later-good-points", good_by_points, good_clinicians=True),
    World("later-good-likeness", good_by_likeness, good_clinicians=True),
)
LATER_WORLDS: Mapping[str, World] = {world.name: world for world in _ALL}
