"""Worlds of the coverage record: sequences of numbers, confounded in ways that differ by setting.

Each seed draws coefficients of its own. Severity drives both what clinicians do and what comes of
it; it may be a feature, the square of one, a product of two, or a feature's past. Stays differ in
frailty, which nobody sees and which ties the decisions of a stay together.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from etips.data.schema import Schema
from etips.data.trajectories import Trajectories

N_FEATURES = 6
MEMORY = 0.7  # of the features, from one step of a stay to the next
FRAILTY = 0.5  # standard deviation, on the scale of log-odds or of log-losses
EVEN = 0.1  # share of actions that clinicians draw evenly
N_TRUTH = 60_000  # stays behind the true risk
NODES, SHARES = np.polynomial.hermite_e.hermegauss(15)


@dataclass(frozen=True)
class Draw:
    """Decisions of a world, one a step."""

    features: np.ndarray
    offsets: np.ndarray
    stay: np.ndarray
    severity: np.ndarray
    propensities: np.ndarray
    action: np.ndarray
    loss: np.ndarray

    def trajectories(self, *, known=False):
        """The same as the package reads it; `known` shows the propensity of the logged action."""
        own = np.arange(len(self.action)), self.action
        return Trajectories(
            sequence=self.features.astype(np.float32),
            offsets=self.offsets,
            schema=Schema(
                sequence=tuple(f"x{i}" for i in range(N_FEATURES)),
                n_actions=self.propensities.shape[1],
                lag=0,
            ),
            action=self.action,
            loss=self.loss,
            propensity=self.propensities[own] if known else None,
        )


@dataclass(frozen=True)
class World:
    """One world.

    Args:
        seed: Draws the coefficients.
        n_actions: How many there are.
        form: Of the severity: "linear", "square", "product" or "history".
        loss: "even" (0 or 1, both common), "rare" (1 in a hundred or less), "near zero" (the policy
            hardly ever loses), "lognormal".
        effect: How much the actions differ; 0 is a null world.
        sharpness: How much clinicians differ from drawing evenly.
        lengths: Of the stays: "one", "short" (1 to 5) or "unequal" (most 1 or 2, some up to 60).
    """

    seed: int
    n_actions: int = 5
    form: str = "linear"
    loss: str = "even"
    effect: float = 0.0
    sharpness: float = 0.5
    lengths: str = "short"

    @cached_property
    def habits(self):
        generator = np.random.default_rng([self.seed, 71])
        return self.sharpness * generator.normal(size=(N_FEATURES + 1, self.n_actions))

    @cached_property
    def effects(self):
        generator = np.random.default_rng([self.seed, 72])
        return self.effect * generator.normal(size=(N_FEATURES + 1, self.n_actions)) * 0.5

    def draw(self, n_stays, *, seed):
        """A log of `n_stays` stays."""
        generator = np.random.default_rng([self.seed, 73, seed])
        lengths = self._lengths(generator, n_stays)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        features = _walk(generator, offsets)
        severity = self.severity(features, offsets)
        table = self.propensities(features, severity)
        n = len(table)
        action = (generator.random(n)[:, None] > table.cumsum(axis=1)).sum(axis=1)
        action = action.clip(max=self.n_actions - 1)
        stay = np.repeat(np.arange(n_stays), lengths)
        frail = FRAILTY * generator.normal(size=n_stays)[stay]
        score = self.scores(features, severity)[np.arange(n), action] + frail
        loss = self._losses(generator, score)
        return Draw(features, offsets, stay, severity, table, action, loss)

    def severity(self, features, offsets):
        """What confounds, with mean 0 and about unit variance."""
        if self.form == "square":
            return (features[:, 0] ** 2 - 1) / np.sqrt(2)
        if self.form == "product":
            return features[:, 0] * features[:, 1]
        if self.form == "history":
            before = np.concatenate([[0.0], features[:-1, 0]])
            before[offsets[:-1]] = 0.0
            return before
        return features[:, 0]

    def propensities(self, features, severity):
        """What clinicians do."""
        score = np.column_stack([features[:, 1:], severity, np.ones(len(features))]) @ self.habits
        score[:, 0] += 2 * self.sharpness * severity  # confounding by indication, in every world
        table = np.exp(score - score.max(axis=1, keepdims=True))
        table /= table.sum(axis=1, keepdims=True)
        return (1 - EVEN) * table + EVEN / self.n_actions

    def scores(self, features, severity):
        """Log-odds, or log-scale, of the loss of every action."""
        base = {"even": -0.3, "rare": -5.4, "near zero": -3.5, "lognormal": 0.0}[self.loss]
        steep = 0.6 if self.loss == "lognormal" else 1.2
        own = np.column_stack([features[:, 1:], severity, np.ones(len(features))]) @ self.effects
        return base + steep * severity[:, None] + own

    def risks(self, draw):
        """Expected loss of every action at every decision, over frailty."""
        score = self.scores(draw.features, draw.severity)
        if self.loss == "lognormal":
            return np.exp(score + (FRAILTY**2 + 0.6**2) / 2)
        parts = (
            share / (1 + np.exp(-(score + FRAILTY * node)))
            for node, share in zip(NODES, SHARES / SHARES.sum(), strict=True)
        )
        return sum(parts)

    def true_risk(self, policy):
        """Of a function from draws to probabilities."""
        draw = self.draw(N_TRUTH, seed=10**6)
        return float((policy(self, draw) * self.risks(draw)).sum(axis=1).mean())

    def _losses(self, generator, score):
        if self.loss == "lognormal":
            return np.exp(score + 0.6 * generator.normal(size=len(score)))
        return (generator.random(len(score)) < 1 / (1 + np.exp(-score))).astype(float)

    def _lengths(self, generator, n_stays):
        if self.lengths == "one":
            return np.ones(n_stays, np.int64)
        if self.lengths == "short":
            return generator.integers(1, 6, n_stays)
        return np.minimum(np.ceil(generator.pareto(1.2, n_stays) + 0.5), 60).astype(np.int64)


def constant(world, draw):
    """The first action, which the severe ones get, for everybody."""
    return np.tile(np.eye(world.n_actions)[0], (len(draw.action), 1))


def rule(world, draw):
    """One of two actions by a feature, mixed with drawing evenly."""
    table = np.full((len(draw.action), world.n_actions), 0.3 / world.n_actions)
    table[np.arange(len(table)), np.where(draw.features[:, 2] > 0, 0, 1)] += 0.7
    return table


def tilt(world, draw):
    """The clinicians, moved towards what is better (or, where nothing is, towards action 1)."""
    gain = world.risks(draw) if world.effect else -np.eye(world.n_actions)[[1]] * 0.2
    scale = np.std(gain) or 1.0
    table = draw.propensities * np.exp(-1.5 * (gain - gain.mean()) / scale)
    return table / table.sum(axis=1, keepdims=True)


def greedy(world, draw):
    """The best action that clinicians take at least once in ten times."""
    risks = world.risks(draw) + 1e-9 * np.arange(world.n_actions)
    allowed = draw.propensities >= 0.1
    return np.eye(world.n_actions)[np.where(allowed, risks, np.inf).argmin(axis=1)]


def _walk(generator, offsets):
    """Features that drift within a stay and start anew with the next."""
    n, n_stays = offsets[-1], len(offsets) - 1
    noise = generator.normal(size=(n, N_FEATURES))
    features = np.empty_like(noise)
    lengths = np.diff(offsets)
    now = generator.normal(size=(n_stays, N_FEATURES))
    for step in range(lengths.max()):
        alive = np.flatnonzero(lengths > step)
        rows = offsets[alive] + step
        if step:
            now[alive] = MEMORY * now[alive] + np.sqrt(1 - MEMORY**2) * noise[rows]
        features[rows] = now[alive]
    return features
