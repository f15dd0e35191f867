"""Small logs for the tests of the evaluation: Hypothesis strategies and one seeded maker."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from etips.evaluation import Log, difference, logged_risk, snips


@dataclass(frozen=True)
class Case:
    """Arrays of one call, at least two clusters of positive weight."""

    loss: np.ndarray
    weight: np.ndarray
    cluster: np.ndarray
    predicted: np.ndarray
    predicted_policy: np.ndarray

    @property
    def model(self):
        return {"predicted": self.predicted, "predicted_policy": self.predicted_policy}

    def take(self, rows):
        return Case(*(values[rows] for values in vars(self).values()))


@st.composite
def cases(draw, low=0.0, high=1.0):
    n = draw(st.integers(2, 12))
    numbers = arrays(np.float64, n, elements=st.floats(low, high, width=32))
    weight = draw(arrays(np.float64, n, elements=st.floats(0, 50, width=32)))
    cluster = draw(arrays(np.int64, n, elements=st.integers(0, 4)))
    weight[:2] += 0.125  # neither of the first two clusters is without weight
    cluster[:2] = (0, 1)
    return Case(draw(numbers), weight, cluster, draw(numbers), draw(numbers))


def make_log(n_stays=60, *, per_stay=3, n_actions=4, seed=0, full=True, predicted=True, floor=0.0):
    """A log, the policy's probabilities at its decisions, and features the policy depends on."""
    generator = np.random.default_rng(seed)
    n = n_stays * per_stay
    feature = generator.normal(size=n)
    scores = np.outer(feature, np.linspace(-1, 1, n_actions))
    propensities = softmax(scores)
    action = (generator.random(n)[:, None] > propensities.cumsum(axis=1)).sum(axis=1)
    action = action.clip(max=n_actions - 1)
    loss = (generator.random(n) < 0.3 + 0.1 * (action == 0)).astype(float)
    log = Log(
        loss=loss,
        action=action,
        propensity=np.maximum(propensities[np.arange(n), action], floor),
        cluster=np.repeat(np.arange(n_stays), per_stay),
        n_actions=n_actions,
        propensities=propensities if full else None,
        predicted=generator.random((n, n_actions)) if predicted else None,
        propensity_floor=floor,
    )
    return log, softmax(-0.5 * scores), feature


def softmax(scores):
    weight = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weight / weight.sum(axis=1, keepdims=True)


def gain_of(shift, *, seed=0, n=200):
    """The gain of a policy whose matched decisions have a loss lower by `shift`."""
    generator = np.random.default_rng(seed)
    matched = generator.random(n) < 0.5
    loss = generator.random(n) - shift * matched
    cluster = np.arange(n)
    return difference(snips(loss, 2.0 * matched, cluster), logged_risk(loss, cluster))


def sample(k=80, per=3, seed=0):
    """Losses, weights and clusters without any structure."""
    generator = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(k), per)
    loss = (generator.random(k * per) < 0.3).astype(float)
    weight = generator.exponential(size=k * per)
    return loss, weight, cluster


def tiny(**other):
    """Four decisions of two stays."""
    fields = {
        "loss": [1.0, 0.0, 1.0, 0.0],
        "action": [0, 0, 1, 0],
        "propensity": [0.5, 0.25, 0.5, 0.1],
        "cluster": [3, 3, 8, 8],
        "n_actions": 2,
    }
    return Log(**(fields | other))
