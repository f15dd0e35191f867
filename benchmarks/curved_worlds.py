"""Worlds whose truth is known and mostly no straight line, for `benchmarks.curved`.

    world = WORLDS["ring"]
    log = world.sample(1_500, seed=0)        # features, actions, losses: what a learner may see
    world.gain(ask)                          # true loss of the clinicians less that of a policy
    world.best_gain()                        # of the best policy that sees what the log shows

A policy is a function that takes `Stays` and returns the probability of every action at every
decision, shape (n_decisions, K); a row of NaN leaves the decision to the clinicians. Gains are sums
of known mean losses over fresh stays, the same for every policy: the only noise is that of these
stays. Losses are negative rewards where a world is known by rewards. Needs numpy alone.
"""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from math import erf

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

N_FRESH = 20_000
LEAST_CHANCE = 0.01  # of every action where clinicians are good
RING_NOISE = 0.6  # standard deviation of losses among rings; it is 1 in most worlds


@dataclass(frozen=True, eq=False)
class Stays:
    """Histories with decisions, padded at the end.

    Args:
        features: Shape (n_stays, steps, d).
        lengths: Steps of each stay, shape (n_stays,).
        decides: Where there is a decision, shape (n_stays, steps). Everything that is said of
            decisions follows the order of `np.nonzero(decides)`.
    """

    features: Floats
    lengths: Ints
    decides: Bools

    @classmethod
    def rows(cls, features: Floats) -> "Stays":
        """One step and one decision a stay, features of shape (n, d)."""
        n = len(features)
        return cls(features[:, None], np.ones(n, np.int64), np.ones((n, 1), bool))

    @property
    def stay(self) -> Ints:
        """Stay of each decision, shape (n_decisions,)."""
        return np.nonzero(self.decides)[0]


@dataclass(frozen=True, eq=False)
class Log:
    """What a learner may see.

    Args:
        stays: The histories.
        action: Of each decision, shape (n_decisions,).
        loss: What came of it, shape (n_decisions,).
        n_actions: How many there are.
        to_come: Whether a loss holds all that follows in the stay, rather than its own part.
    """

    stays: Stays
    action: Ints
    loss: Floats
    n_actions: int
    to_come: bool = False


Ask = Callable[[Stays], Floats]


@dataclass(frozen=True, eq=False)
class Drawn:
    """Stays with what is hidden of them.

    Args:
        stays: The histories.
        chance: Probability of every action, given all that clinicians see, shape (n_decisions, K).
        mean: Mean loss of every action, given the same, shape (n_decisions, K).
        noise: What is added to the mean, shape (n_decisions,).
        seen_mean: Mean loss given what the log shows; `mean` if left out.
    """

    stays: Stays
    chance: Floats
    mean: Floats
    noise: Floats
    seen_mean: Floats | None = None

    def value(self, probabilities: Floats) -> float:
        """Mean loss of a policy; the clinicians decide where a row is NaN."""
        taken = np.where(np.isnan(probabilities), self.chance, probabilities)
        return float((taken * self.mean).sum(axis=1).mean())

    def best(self) -> Floats:
        """Probabilities of the best policy that sees what the log shows."""
        known = self.mean if self.seen_mean is None else self.seen_mean
        return np.eye(known.shape[1])[known.argmin(axis=1)]


def draw_actions(rng: Generator, chance: Floats) -> Ints:
    """An action of each row of probabilities, shape (n,)."""
    above = rng.random(len(chance))[:, None] > chance.cumsum(axis=1)
    return np.minimum(above.sum(axis=1), chance.shape[1] - 1)


@dataclass(frozen=True)
class World:
    """A world whose decisions do not change what comes later.

    Args:
        name: In tables.
        draw: Makes so many stays.
        good_clinicians: Whether clinicians mostly give the best treatment.
        effect: Whether any action is better than another.
    """

    name: str
    draw: Callable[[Generator, int], Drawn]
    good_clinicians: bool = False
    effect: bool = True

    def _rng(self, *keys: int) -> Generator:
        return np.random.default_rng([zlib.crc32(self.name.encode()), *keys])

    def sample(self, n: int, seed: int) -> Log:
        """A log of `n` stays."""
        rng = self._rng(1, n, seed)
        drawn = self.draw(rng, n)
        action = draw_actions(rng, drawn.chance)
        loss = drawn.mean[np.arange(action.size), action] + drawn.noise
        return Log(drawn.stays, action, loss, drawn.chance.shape[1])

    @cached_property
    def fresh(self) -> Drawn:
        """The stays that judge, of which no log has any."""
        return self.draw(self._rng(0), N_FRESH)

    def logged_value(self) -> float:
        """Mean loss under the clinicians."""
        return self.fresh.value(self.fresh.chance)

    def gain(self, ask: Ask) -> float:
        """True mean loss of the clinicians less that of the policy."""
        return self.logged_value() - self.fresh.value(ask(self.fresh.stays))

    def best_gain(self) -> float:
        """The gain of the best policy that sees what the log shows."""
        return self.logged_value() - self.fresh.value(self.fresh.best())


def softmax(logits: Floats) -> Floats:
    """Probabilities along the last axis."""
    high = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return high / high.sum(axis=-1, keepdims=True)


def two_actions(second: Floats) -> Floats:
    """Chances of two actions from the chance of the second."""
    return np.stack([1 - second, second], axis=1)


def logistic(x: Floats) -> Floats:
    """The logistic function."""
    return 1 / (1 + np.exp(-x))


# Means: loss of every action from features, shape (n, K). Worlds whose clinicians are good share
# them with those whose clinicians go by habit.


def ring_means(x: Floats) -> Floats:
    """The best of four arms by the distance from the middle, in rings of equal area."""
    band = np.digitize(x[:, 0] ** 2 + x[:, 1] ** 2, np.array([0.25, 0.5, 0.75]) * 4 / np.pi)
    return 0.4 * x[:, 2:3] - np.eye(4)[band]


def product_means(x: Floats) -> Floats:
    """The better of two arms by the sign of a product."""
    helps = 0.5 * np.sign(x[:, 0] * x[:, 1])
    base = 1.2 * x[:, 2] + 0.6 * x[:, 0]
    return np.stack([base + helps, base - helps], axis=1)


def threshold_means(x: Floats) -> Floats:
    """The best of three arms by two thresholds, one below the other."""
    best = np.where(x[:, 0] < -0.3, 0, np.where(x[:, 1] > 0.4, 1, 2))
    return 0.5 * x[:, 2:3] - 0.8 * np.eye(3)[best]


def line_means(x: Floats) -> Floats:
    """Three arms, each a straight line."""
    slopes = np.zeros((x.shape[1], 3))
    slopes[:4] = [[0.5, -0.4, 0.0], [0.0, 0.6, -0.5], [-0.4, 0.0, 0.5], [0.3, 0.3, 0.3]]
    return x @ slopes


# Worlds of one decision a stay.


def ring(rng: Generator, n: int) -> Drawn:
    """Best arm by rings; habits follow two features."""
    x = rng.uniform(-1, 1, (n, 6))
    chance = softmax(np.stack([0.8 * x[:, 2], 0.6 * x[:, 0], -0.6 * x[:, 0], 0 * x[:, 0]], axis=1))
    return Drawn(Stays.rows(x), chance, ring_means(x), RING_NOISE * rng.normal(size=n))


def product(rng: Generator, n: int) -> Drawn:
    """Best arm by the sign of a product; who fares badly is treated more."""
    x = rng.normal(size=(n, 6))
    chance = two_actions(logistic(1.2 * x[:, 2] + 0.6 * x[:, 0]))
    return Drawn(Stays.rows(x), chance, product_means(x), rng.normal(size=n))


def thresholds(rng: Generator, n: int) -> Drawn:
    """Best arm by thresholds; habits follow prognosis and one of the features that matter."""
    x = rng.normal(size=(n, 8))
    chance = softmax(np.stack([0.5 * x[:, 0], 0.8 * x[:, 2], 0 * x[:, 0]], axis=1))
    return Drawn(Stays.rows(x), chance, threshold_means(x), rng.normal(size=n))


def rare_subgroup(rng: Generator, n: int) -> Drawn:
    """The second arm helps one in twenty much and harms the others a little."""
    x = rng.uniform(0, 1, (n, 8))
    helped = (x[:, 0] > 0.75) & (x[:, 1] > 0.8)
    base = 2 * (x[:, 2] - 0.5)
    chance = two_actions(logistic(1.5 * (x[:, 2] - 0.5) - 0.3))
    mean = np.stack([base, base + np.where(helped, -1.8, 0.15)], axis=1)
    return Drawn(Stays.rows(x), chance, mean, rng.normal(size=n))


def categories(rng: Generator, n: int, *, one_hot: bool) -> Drawn:
    """The best of three arms by a kind of patient, of twelve, in no order; habits too."""
    kinds = 12
    best = np.array([0, 2, 1, 1, 0, 2, 0, 1, 2, 2, 0, 1])
    habit = np.array([0.6, 0.0, -0.6, 0.9, -0.9, 0.3, -0.3, 0.6, 0.0, -0.6, 0.9, -0.9])
    kind = rng.integers(0, kinds, n)
    x = rng.normal(size=(n, 3))
    mean = 0.6 * x[:, :1] + 0.5 * habit[kind][:, None] - 0.8 * np.eye(3)[best[kind]]
    chance = softmax(np.stack([habit[kind], 0.5 * x[:, 0], 0 * x[:, 0]], axis=1))
    code = np.eye(kinds)[kind] if one_hot else kind[:, None].astype(np.float64)
    return Drawn(Stays.rows(np.hstack([code, x])), chance, mean, rng.normal(size=n))


def heavy_tails(rng: Generator, n: int) -> Drawn:
    """Three arms by a hat and a valley of one feature; losses have hardly a variance."""
    x = rng.normal(size=(n, 6))
    hat = np.abs(x[:, 0]) - 0.8
    mean = np.stack([0 * hat, 0.8 * hat, 0.5 - 0.8 * (x[:, 1] > 0)], axis=1) + 0.5 * x[:, 2:3]
    chance = softmax(np.stack([0.6 * x[:, 2], 0.4 * x[:, 0], 0 * hat], axis=1))
    return Drawn(Stays.rows(x), chance, mean, 0.7 * rng.standard_t(2.2, n))


def twenty_arms(rng: Generator, n: int) -> Drawn:
    """Twenty arms around a circle: the nearer to the patient's angle the better."""
    x = rng.normal(size=(n, 6))
    turn = np.arctan2(x[:, 1], x[:, 0])[:, None] - 2 * np.pi * np.arange(20) / 20
    usual = np.cos(2 * np.pi * np.arange(20) / 5) * 0.7  # habits, of no meaning
    chance = softmax(usual + 0.5 * x[:, 2:3] * np.sin(np.arange(20)))
    return Drawn(Stays.rows(x), chance, 0.5 * x[:, 2:3] - np.cos(turn), rng.normal(size=n))


def visible_confounding(rng: Generator, n: int) -> Drawn:
    """Who is ill is treated, along a curve that all can see; whom it helps is another curve."""
    x = rng.uniform(-2, 2, (n, 6))
    ill = np.sin(2 * x[:, 0]) + 0.5 * (x[:, 1] ** 2 - 4 / 3)
    helps = 0.6 * np.sign(np.abs(x[:, 2]) - 1) + 0.3 * x[:, 0]
    mean = 2 * ill[:, None] + np.stack([0 * ill, -helps], axis=1)
    chance = 0.03 + 0.94 * two_actions(logistic(2.5 * ill))
    return Drawn(Stays.rows(x), chance, mean, rng.normal(size=n))


def line(rng: Generator, n: int) -> Drawn:
    """Three straight lines; habits follow straight lines too."""
    x = rng.normal(size=(n, 8))
    chance = softmax(np.stack([0.7 * x[:, 3], 0.7 * x[:, 0], 0 * x[:, 0]], axis=1))
    return Drawn(Stays.rows(x), chance, line_means(x), rng.normal(size=n))


def null(rng: Generator, n: int) -> Drawn:
    """No arm differs from another, but the ill, along a curve, get other arms."""
    x = rng.normal(size=(n, 6))
    ill = np.abs(x[:, 0]) + 0.8 * (x[:, 1] > 0)
    chance = softmax(np.stack([1.2 * ill - 1, 0 * ill, 0.5 * x[:, 2]], axis=1))
    return Drawn(
        Stays.rows(x), chance, np.repeat(1.5 * ill[:, None], 3, axis=1), rng.normal(size=n)
    )


def hidden(rng: Generator, n: int) -> Drawn:
    """The gravely ill are treated more, and no feature says who they are."""
    x = rng.normal(size=(n, 6))
    grave = rng.random(n) < 0.35
    helps = np.where(np.abs(x[:, 0]) < 0.9, 0.7, -0.5)
    effect = np.stack([np.zeros(n), -helps], axis=1)
    seen = 0.5 * x[:, 1:2] + effect
    chance = two_actions(logistic(2.0 * grave - 0.9 + 0.5 * x[:, 1]))
    mean = seen + 1.2 * (grave[:, None] - 0.35)
    return Drawn(Stays.rows(x), chance, mean, rng.normal(size=n), seen_mean=seen)


def zhou_means(x5: Floats, x7: Floats) -> tuple[Ints, Floats]:
    """Region of each patient and mean reward of every arm, shape (n, 3)."""
    zero = (x5 < 0.6) & (x7 > 0.35)
    low = (x5 / 0.6) ** 2 + (x7 / 0.35) ** 2 < 1
    high = ((x5 - 1) / 0.4) ** 2 + ((x7 - 1) / 0.35) ** 2 < 1
    region = np.where(zero, 0, np.where(low | high, 2, 1))
    return region, np.array([[3, 2, 1], [1.5, 2, 1.5], [-1.5, 0, 1.5]])[region]


def zhou(rng: Generator, n: int) -> Drawn:
    """Zhou, Athey and Wager, Operations Research 2023, section 6.4.1."""
    x = rng.uniform(0, 1, (n, 10))
    region, reward = zhou_means(x[:, 4], x[:, 6])
    chance = np.array([[0.2, 0.6, 0.2], [0.2, 0.6, 0.2], [0.4, 0.2, 0.4]])[region]
    return Drawn(Stays.rows(x), chance, -reward, 2 * rng.normal(size=n))


def zhou_tree(stays: Stays) -> Floats:
    """The best tree of depth two, by a search of all on a grid of 1600 x 1600; value 2.2157."""
    x5, x7 = stays.features[:, 0, 4], stays.features[:, 0, 6]
    return np.eye(3)[np.where(x5 < 0.6, np.where(x7 < 0.35, 2, 0), np.where(x7 < 0.66, 1, 2))]


# Worlds with a history.


def history(rng: Generator, n: int, steps: tuple[int, int], n_features: int) -> tuple[Floats, Ints]:
    """Features that wander within a stay, padded with 0, and lengths of stays."""
    lengths = rng.integers(steps[0], steps[1] + 1, n)
    start, moves = rng.normal(size=(n, 1, n_features)), rng.normal(size=(n, steps[1], n_features))
    features = 0.6 * start + 0.8 * moves
    return features * (np.arange(steps[1]) < lengths[:, None])[:, :, None], lengths


def decided_last(features: Floats, lengths: Ints) -> Stays:
    """A decision at the last step of each stay."""
    return Stays(features, lengths, np.arange(features.shape[1]) == lengths[:, None] - 1)


def last_of(features: Floats, lengths: Ints) -> Floats:
    """The newest values, shape (n, d)."""
    return features[np.arange(len(features)), lengths - 1]


def history_extreme(rng: Generator, n: int) -> Drawn:
    """The best of three arms by the highest value before the newest one; three to six steps."""
    features, lengths = history(rng, n, (3, 6), 4)
    before = np.arange(6) < lengths[:, None] - 1
    highest = np.where(before, features[:, :, 0], -np.inf).max(axis=1)
    newest = last_of(features, lengths)
    best = np.digitize(highest, [0.4, 1.2])
    mean = 0.5 * newest[:, 1:2] - 0.9 * np.eye(3)[best]
    chance = softmax(np.stack([0.6 * newest[:, 1], 0.5 * newest[:, 0], 0 * highest], axis=1))
    return Drawn(decided_last(features, lengths), chance, mean, rng.normal(size=n))


def history_trend(rng: Generator, n: int) -> Drawn:
    """The best of three arms by whether a value rises, falls or stays; three to six steps."""
    features, lengths = history(rng, n, (3, 6), 4)
    kind = rng.integers(-1, 2, n)
    at = np.arange(6) * (np.arange(6) < lengths[:, None])
    features[:, :, 0] += 0.8 * kind[:, None] * at
    newest = last_of(features, lengths)
    # The kind itself is hidden: what a policy can know of it is the slope of what is seen.
    inside = np.arange(6) < lengths[:, None]
    centred = np.where(inside, np.arange(6) - (lengths[:, None] - 1) / 2, 0.0)
    slope = (centred * features[:, :, 0]).sum(axis=1) / (centred**2).sum(axis=1)
    mean = 0.5 * newest[:, 1:2] - 0.9 * np.eye(3)[np.digitize(slope, [-0.4, 0.4])]
    chance = softmax(np.stack([0.6 * newest[:, 1], 0.4 * newest[:, 0], 0 * slope], axis=1))
    return Drawn(decided_last(features, lengths), chance, mean, rng.normal(size=n))


def time_since(rng: Generator, n: int) -> Drawn:
    """Two to four decisions a stay; the best of three arms by steps of the time since an event."""
    features, lengths = history(rng, n, (2, 4), 4)
    since = rng.exponential(8, (n, 1)) + np.cumsum(rng.uniform(1, 8, (n, 4)), axis=1)
    inside = np.arange(4) < lengths[:, None]
    features = np.concatenate([(since * inside)[:, :, None], features], axis=2)
    own, hours = features[inside], since[inside]
    frail = np.repeat(0.7 * rng.normal(size=n), lengths)  # shared by the decisions of a stay
    best = np.digitize(hours, [6, 18])
    mean = 0.5 * own[:, 1:2] + frail[:, None] - 0.8 * np.eye(3)[[1, 2, 0]][best]
    chance = softmax(np.stack([0.7 * own[:, 1], 0.04 * hours - 0.5, 0 * hours], axis=1))
    seen = mean - frail[:, None]
    return Drawn(Stays(features, lengths, inside), chance, mean, rng.normal(size=len(own)), seen)


# Worlds in which clinicians are good.


def good(rng: Generator, n: int, *, means: Callable[[Floats], Floats], temperature: float) -> Drawn:
    """Clinicians take a softmax of the true means; no action is ever quite left out."""
    x = rng.uniform(-1, 1, (n, 6)) if means is ring_means else rng.normal(size=(n, 6))
    mean = means(x)
    chance = softmax(-mean / temperature)
    least = LEAST_CHANCE + (1 - mean.shape[1] * LEAST_CHANCE) * chance
    spread = RING_NOISE if means is ring_means else 1.0
    return Drawn(Stays.rows(x), least, mean, spread * rng.normal(size=n))


def blind_spot(rng: Generator, n: int) -> Drawn:
    """Clinicians are good by thresholds, but mistake one arm for another in one group of five."""
    x = rng.normal(size=(n, 6))
    mean = threshold_means(x)
    taken_for = np.where(x[:, 3:4] > 0.84, np.roll(mean, 1, axis=1), mean)
    chance = LEAST_CHANCE + (1 - 3 * LEAST_CHANCE) * softmax(-taken_for / 0.3)
    return Drawn(Stays.rows(x), chance, mean, rng.normal(size=n))


# A world whose first decision changes what comes later.


@dataclass(frozen=True)
class TwoStage:
    """`sim_two_stage` of polle (Nordland and Holst, JSS 116(4), 2026).

    Features at a decision: the newest of the covariates L and C, and the earlier action. A loss is
    the negative utility from the decision on, so that a learner of single decisions can see what
    the first one leads to; the value of a policy is that of the whole course under it.
    """

    name: str = "two-stage"
    good_clinicians: bool = False
    effect: bool = True

    def sample(self, n: int, seed: int) -> Log:
        """A log of `n` stays, two decisions each."""
        rng = np.random.default_rng([zlib.crc32(self.name.encode()), 1, n, seed])
        l1, own, l2, noise, l3 = rng.normal(size=(5, n))
        c1 = l1 + own
        a1 = (rng.random(n) < logistic(c1)).astype(np.int64)
        c2 = 0.5 * l1 + a1 + noise
        a2 = (rng.random(n) < logistic(c2)).astype(np.int64)
        later = a2 * c2 + l3
        loss = -np.stack([a1 * c1 + l2 + later, later], axis=1).ravel()
        stays = self._stays(l1, c1, (l2, c2, a1))
        return Log(stays, np.stack([a1, a2], axis=1).ravel(), loss, 2, to_come=True)

    def _stays(
        self, l1: Floats, c1: Floats, second: tuple[Floats, Floats, Ints] | None = None
    ) -> Stays:
        """Stays with both decisions, or with the first alone."""
        n = len(l1)
        features, decides = np.zeros((n, 2, 3)), np.ones((n, 2), bool)
        features[:, 0, 0], features[:, 0, 1] = l1, c1
        if second is None:
            decides[:, 1] = False
        else:
            features[:, 1] = np.stack(second, axis=1)
        return Stays(features, decides.sum(axis=1), decides)

    def value(self, ask: Ask | None) -> float:
        """Mean utility of a course under a policy; under the clinicians if left out.

        Both first actions are followed, each with its probability, so no action is drawn. Every
        stay has a mirror image, which takes most of the noise of the fresh stays.
        """
        rng = np.random.default_rng([zlib.crc32(self.name.encode()), 0])
        half = rng.normal(size=(4, N_FRESH // 2))
        l1, own, l2, noise = np.concatenate([half, -half], axis=1)
        c1 = l1 + own
        first = self._or_clinicians(ask, self._stays(l1, c1), c1)[:, 0]
        total = l1.copy()
        for a1 in (0, 1):
            c2 = 0.5 * l1 + a1 + noise
            stays = self._stays(l1, c1, (l2, c2, np.full(len(l1), a1)))
            second = self._or_clinicians(ask, stays, np.stack([c1, c2], axis=1))[:, -1]
            total += first[:, a1] * (a1 * c1 + second[:, 1] * c2)
        return float(total.mean())

    @staticmethod
    def _or_clinicians(ask: Ask | None, stays: Stays, c: Floats) -> Floats:
        """Probabilities by stay and step, shape (n, steps, 2)."""
        usual = two_actions(logistic(c.ravel()))
        given = usual if ask is None else ask(stays)
        return np.where(np.isnan(given), usual, given).reshape(len(stays.lengths), -1, 2)

    def gain(self, ask: Ask) -> float:
        """Utility of a whole course under the policy less that under the clinicians."""
        return self.value(ask) - self.value(None)

    def best_gain(self) -> float:
        """That of the policy that is best in truth."""
        return self.gain(best_two_stage)


def best_two_stage(stays: Stays) -> Floats:
    """Treat at the second decision where C > 0; at the first where C and what follows pay."""
    treat = stays.features[:, :, 1].copy()
    l1 = stays.features[:, 0, 0]
    treat[:, 0] += positive_part(0.5 * l1 + 1) - positive_part(0.5 * l1)
    return np.eye(2)[(treat[stays.decides] > 0).astype(int)]


def positive_part(mean: Floats) -> Floats:
    """Mean of max(0, a normal variable of variance 1)."""
    below = np.vectorize(lambda z: 0.5 * (1 + erf(z / 2**0.5)))(mean)
    return mean * below + np.exp(-(mean**2) / 2) / (2 * np.pi) ** 0.5


GOOD: Mapping[str, tuple[Callable[[Floats], Floats], float, float]] = {
    "line": (line_means, 0.15, 0.5),
    "thresholds": (threshold_means, 0.27, 0.5),
    "product": (product_means, 0.45, 0.8),
    "ring": (ring_means, 0.28, 0.5),
}
"""Means, and the temperatures of strict clinicians (the best in 9 of 10) and of mild ones (7)."""

_ALL: tuple[World | TwoStage, ...] = (
    World("ring", ring),
    World("product", product),
    World("thresholds", thresholds),
    World("time-since", time_since),
    World("rare-subgroup", rare_subgroup),
    World("categories-coded", partial(categories, one_hot=False)),
    World("categories-one-hot", partial(categories, one_hot=True)),
    World("heavy-tails", heavy_tails),
    World("twenty-arms", twenty_arms),
    World("visible-confounding", visible_confounding),
    World("history-extreme", history_extreme),
    World("history-trend", history_trend),
    World("line", line),
    World("null", null, effect=False),
    World("hidden", hidden),
    World("zhou", zhou),
    TwoStage(),
    World("blind-spot", blind_spot, good_clinicians=True),
    *(
        World(
            f"good-{name}-{kind}",
            partial(good, means=means, temperature=temperature),
            good_clinicians=True,
        )
        for name, (means, strict, mild) in GOOD.items()
        for kind, temperature in (("strict", strict), ("mild", mild))
    ),
)
WORLDS: Mapping[str, World | TwoStage] = {world.name: world for world in _ALL}
