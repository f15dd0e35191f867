"""Clinic: a small tunable world in which every risk is a finite sum, for statistical tests."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from etips.data.coded import Coded, Floats32, Truth
from etips.data.decisions import Floats
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.errors import DataError
from etips.worlds.draws import Chances, generator, require_policy, require_settings
from etips.worlds.world_registry import Simulation

_SHARPNESS = 3.0  # of the clinicians' preferences; chances of 0.001 appear without `overlap`
_WORLD, _LOG = 0, 1  # streams of random numbers


@dataclass(frozen=True)
class Clinic:
    """A clinic whose patients show one of finitely many contexts at each decision.

    A stay has a hidden type that makes some contexts likely at all its steps, and a frailty that
    moves the losses of all its decisions up or down together; both leave the marginal law exact.
    Actions do not change later contexts.

    Args:
        n_contexts: How many contexts there are.
        n_features: How many features describe a context.
        n_actions: How many actions K.
        n_types: How many types of stay; 1 makes the contexts of a stay independent.
        overlap: Share of the uniform policy mixed into the logging policy, in [0, 1].
        base_risk: Exact risk of the uniform policy, in (0, 1).
        decisions_per_stay: How many, in every stay.
        effect: How much actions matter, in [0, 1]; with 0 all policies have the same risk.
        frailty: Part of a decision's room in [0, 1] that the stay's frailty moves it by, in [0, 1).
        confounding: Gamma >= 1. A hidden fair coin at each decision moves the loss, and the odds of
            each action by at most this factor either way; 1 leaves the choice to the context.
        world: Seed of the contexts and of who prefers and benefits from what.
    """

    n_contexts: int = 200
    n_features: int = 5
    n_actions: int = 5
    n_types: int = 4
    overlap: float = 0.3
    base_risk: float = 0.5
    decisions_per_stay: int = 5
    effect: float = 0.5
    frailty: float = 0.3
    confounding: float = 1.0
    world: int = 0

    def __post_init__(self) -> None:
        counts = ("n_contexts", "n_features", "n_types", "decisions_per_stay")
        require_settings(
            **{name: (getattr(self, name) >= 1, "must be at least 1") for name in counts},
            n_actions=(self.n_actions >= 2, "must be at least 2"),
            overlap=(0 <= self.overlap <= 1, "must be in [0, 1]"),
            base_risk=(0 < self.base_risk < 1, "must be in (0, 1)"),
            effect=(0 <= self.effect <= 1, "must be in [0, 1]"),
            frailty=(0 <= self.frailty < 1, "must be in [0, 1)"),
            confounding=(1 <= self.confounding < np.inf, "must be at least 1 and finite"),
            world=(self.world >= 0, "must not be negative"),
        )

    def log(self, n_stays: int, *, seed: int) -> Trajectories:
        """Log `n_stays` stays; a decision sees its own context (`lag=0`).

        `propensity` is the logging policy given the context. Under confounding that is not what the
        clinicians used, and the coin that they saw is nowhere in the data.
        """
        require_settings(n_stays=(n_stays >= 1, "must be at least 1"))
        rng, tables = generator(seed, _LOG), self._tables
        per_stay = self.decisions_per_stay
        kind = Chances.of(tables.types[None]).draw(np.zeros(n_stays, np.int64), rng)
        context = Chances.of(tables.contexts_of_type).draw(np.repeat(kind, per_stay), rng)
        coin = rng.integers(0, 2, context.size)
        frail = np.repeat(rng.choice([-1, 1], n_stays), per_stay)
        given_coin = self.logging_given_coin().reshape(-1, self.n_actions)
        action = Chances.of(given_coin).draw(coin * self.n_contexts + context, rng)
        chance = self.loss_given_coin()[coin, context, action]
        chance += self.frailty * frail * tables.room[context, action]
        code = context.astype(np.int32)
        return Trajectories(
            sequence=Coded(tables.features, code),
            offsets=np.arange(n_stays + 1) * per_stay,
            schema=Schema(
                sequence=tuple(f"x{i}" for i in range(self.n_features)),
                n_actions=self.n_actions,
                lag=0,
                provenance={"world": "clinic", "setting": repr(self), "seed": str(seed)},
            ),
            action=action,
            loss=(rng.random(chance.size) < chance).astype(np.float64),
            propensity=tables.logging[context, action],
            truth=Truth(code, tables.expected_loss, tables.logging),
        )

    def true_risk(self, policy: Floats) -> float:
        """Exact population risk of a policy, shape (n_contexts, n_actions)."""
        return self._mean_over_contexts(policy, self._tables.expected_loss)

    def naive_risk(self, policy: Floats) -> float:
        """What an estimate that believes `propensity` tends to with endless data.

        It equals `true_risk` without confounding. With it, the best action looks better than it is.
        """
        share = self.logging_given_coin() / 2
        seen = (share * self.loss_given_coin()).sum(axis=0) / share.sum(axis=0)
        return self._mean_over_contexts(policy, seen)

    def context_probabilities(self) -> Floats:
        """How likely each context is at a decision, shape (n_contexts,)."""
        return self._tables.types @ self._tables.contexts_of_type

    def logging_table(self) -> Floats:
        """The logging policy given the context alone, shape (n_contexts, n_actions)."""
        return self._tables.logging

    def expected_loss_table(self) -> Floats:
        """Expected loss of each action in each context, shape (n_contexts, n_actions)."""
        return self._tables.expected_loss

    def best_table(self) -> Floats:
        """The best policy, shape (n_contexts, n_actions); among equals the lowest action."""
        best = self._tables.expected_loss.argmin(axis=1)
        return np.asarray(np.eye(self.n_actions)[best])

    def logging_given_coin(self) -> Floats:
        """What the clinicians do for each side of the coin, shape (2, n_contexts, n_actions)."""
        tables = self._tables
        lean = _largest_lean(tables.logging, tables.advantage, self.confounding)
        return np.stack([tables.logging * (1 - lean), tables.logging * (1 + lean)])

    def loss_given_coin(self) -> Floats:
        """Expected loss for each side of the coin, shape (2, n_contexts, n_actions)."""
        tables = self._tables
        # What frailty leaves of the room; equal for all actions, so that the coin is no effect.
        moved = (1 - self.frailty) * tables.room.min(axis=1, keepdims=True)
        return np.stack([tables.expected_loss - moved, tables.expected_loss + moved])

    @cached_property
    def _tables(self) -> "_Tables":
        return _build(self)

    def _mean_over_contexts(self, policy: Floats, loss: Floats) -> float:
        if policy.shape != loss.shape:
            raise DataError("policy", f"must have shape {loss.shape}")
        require_policy(policy)
        return float(self.context_probabilities() @ (policy * loss).sum(axis=1))


def simulate_clinic(wanted: Simulation) -> Trajectories:
    """A log of the usual clinic, as the registry of worlds asks for it."""
    return Clinic().log(wanted.n_stays or 0, seed=wanted.seed)


@dataclass(frozen=True, eq=False)
class _Tables:
    features: Floats32  # (n_contexts, n_features)
    types: Floats  # (n_types,)
    contexts_of_type: Floats  # (n_types, n_contexts)
    logging: Floats  # (n_contexts, n_actions)
    advantage: Floats  # (n_contexts, n_actions), in [-1, 1], mean 0 over actions; below 0 is good
    expected_loss: Floats  # (n_contexts, n_actions)

    @property
    def room(self) -> Floats:
        """How far each expected loss may move either way and stay in [0, 1]."""
        return np.minimum(self.expected_loss, 1 - self.expected_loss)


def _build(clinic: Clinic) -> _Tables:
    rng = generator(clinic.world, _WORLD)
    shape = (clinic.n_features, clinic.n_actions)
    x = rng.normal(size=(clinic.n_contexts, clinic.n_features))
    types = rng.dirichlet(np.full(clinic.n_types, 5.0))
    contexts_of_type = _softmax((x @ rng.normal(size=(clinic.n_features, clinic.n_types))).T)
    likely = types @ contexts_of_type
    liked = _softmax(_SHARPNESS * np.tanh(x @ rng.normal(size=shape)))
    advantage = np.tanh(x @ rng.normal(size=shape))
    advantage -= advantage.mean(axis=1, keepdims=True)
    prognosis = np.tanh(x @ rng.normal(size=clinic.n_features))
    prognosis -= likely @ prognosis
    size = np.abs(prognosis).max()  # of a single context only rounding is left, which counts as 0
    prognosis = prognosis / size if size > 1e-9 else 0 * prognosis
    advantage = advantage / np.abs(advantage).max()
    # Both parts average to 0 under the uniform policy, and their sizes add up to at most the room.
    moved = (1 - clinic.effect) / 2 * prognosis[:, None] + clinic.effect * advantage
    tables = _Tables(
        features=x.astype(np.float32),
        types=types,
        contexts_of_type=contexts_of_type,
        logging=(1 - clinic.overlap) * liked + clinic.overlap / clinic.n_actions,
        advantage=advantage,
        expected_loss=clinic.base_risk + min(clinic.base_risk, 1 - clinic.base_risk) * moved,
    )
    for array in vars(tables).values():
        array.flags.writeable = False
    return tables


def _largest_lean(logging: Floats, toward: Floats, gamma: float) -> Floats:
    """The largest c(x, a) along `toward`; the coin makes the policy pi (1 + c) or pi (1 - c).

    Both must be policies, so the mean of c under pi is 0. For p = pi(a | x), the odds of p (1 + c)
    against those of p stay below gamma while c <= (gamma - 1)(1 - p) / (1 + (gamma - 1) p), those
    of p (1 - c) above 1 / gamma while c <= (gamma - 1)(1 - p) / (gamma - (gamma - 1) p).
    """
    direction = toward - (logging * toward).sum(axis=1, keepdims=True)
    more = gamma - 1
    widest = more * (1 - logging) / np.maximum(1 + more * logging, gamma - more * logging)
    size = np.abs(direction)
    limits = np.divide(widest, size, out=np.full_like(size, np.inf), where=size > 1e-12)
    scale = limits.min(axis=1, keepdims=True)
    return np.asarray(np.where(np.isfinite(scale), scale, 0) * direction)


def _softmax(scores: Floats) -> Floats:
    weight = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))
