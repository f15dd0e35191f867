"""Ways from a log to a verdict: propensities known, wrong, or fitted by the package as it comes."""

from dataclasses import dataclass

import numpy as np

from benchmarks.record_worlds import EVEN, World, constant, greedy, rule, tilt
from etips.data.history_rows import visible_rows
from etips.evaluation import Log, assess

POLICIES = {policy.__name__: policy for policy in (constant, rule, tilt, greedy)}
N_LEARNED_TRUTH = 6000  # stays behind the true risk of a learned policy


@dataclass(frozen=True)
class Outcome:
    """What one study said.

    Args:
        covers: The headline's interval holds the truth.
        reliable: The verdict.
        better: The gain is called better, at one decision.
        is_better: It is.
    """

    covers: bool
    reliable: bool
    better: bool
    is_better: bool


class Fixed:
    """A policy of the record, asked by the package."""

    def __init__(self, world, policy):
        self.world, self.policy = world, policy

    def predict_proba(self, data):
        features = np.asarray(data.sequence[:], np.float64)
        severity = self.world.severity(features, data.offsets)
        table = self.world.propensities(features, severity)
        stand_in = _Rows(features, severity, table, np.zeros(len(table), np.int64))
        return self.policy(self.world, stand_in)


@dataclass(frozen=True)
class _Rows:
    features: np.ndarray
    severity: np.ndarray
    propensities: np.ndarray
    action: np.ndarray


def known(world, n_stays, policy, seed):
    """All propensities known by design."""
    draw = world.draw(n_stays, seed=seed)
    return _assessed(world, draw, draw.propensities, policy, known=True)


def right(world, n_stays, policy, seed):
    """The model that made the log, its coefficients fitted in sample."""
    draw = world.draw(n_stays, seed=seed)
    columns = np.column_stack([draw.features, draw.severity])
    table = _logit(columns, draw.action, world.n_actions, even=EVEN)
    return _assessed(world, draw, table, policy)


def wrong(world, n_stays, policy, seed):
    """A logit of the features that have nothing to do with the severity: calibrated, and blind."""
    draw = world.draw(n_stays, seed=seed)
    columns = draw.features[:, 2:]
    return _assessed(world, draw, _logit(columns, draw.action, world.n_actions), policy)


def frequencies(world, n_stays, policy, seed):
    """How often each action was taken, whatever was seen."""
    draw = world.draw(n_stays, seed=seed)
    share = np.bincount(draw.action, minlength=world.n_actions) / len(draw.action)
    return _assessed(world, draw, np.tile(share, (len(draw.action), 1)), policy)


def both_wrong(world, n_stays, policy, seed):
    """Frequencies of actions, and the mean loss of each: doubly robust, both blind."""
    draw = world.draw(n_stays, seed=seed)
    count = np.bincount(draw.action, minlength=world.n_actions)
    mean = np.bincount(draw.action, draw.loss, world.n_actions) / np.maximum(count, 1)
    n = len(draw.action)
    table, predicted = np.tile(count / n, (n, 1)), np.tile(mean, (n, 1))
    return _assessed(world, draw, table, policy, predicted=predicted)


def default(world, n_stays, policy, seed):
    """`etips.evaluate` as it comes: propensities and outcomes cross-fitted by networks."""
    from etips.results.evaluate import evaluate

    data = world.draw(n_stays, seed=seed).trajectories()
    results = evaluate({policy: Fixed(world, POLICIES[policy])}, data)
    return _told(results.methods[0], world.true_risk(POLICIES[policy]), _clinicians(world))


def learned(world, n_stays, policy, seed):
    """A policy learned by the package on half of the stays, evaluated on the other half."""
    from etips.learn import DoublyRobust, EtIPS
    from etips.results.evaluate import evaluate

    half = n_stays // 2
    learner = {"EtIPS": EtIPS, "DoublyRobust": DoublyRobust}[policy](seed=seed)
    learner.fit(world.draw(half, seed=2 * seed).trajectories())
    results = evaluate({policy: learner}, world.draw(half, seed=2 * seed + 1).trajectories())
    many = world.draw(N_LEARNED_TRUTH, seed=10**6)
    said = learner.fitted_policy().deployed(many.trajectories())
    table = np.where(said.abstained[:, None], many.propensities, said.probabilities)
    truth = float((table * world.risks(many)).sum(axis=1).mean())
    clinicians = float((many.propensities * world.risks(many)).sum(axis=1).mean())
    return _told(results.methods[0], truth, clinicians)


ROUTES = {f.__name__: f for f in (known, right, wrong, frequencies, both_wrong, default, learned)}


def study(settings, n_stays, policy, route, seed):
    """One study in a world of its own."""
    return ROUTES[route](World(seed=seed, **settings), n_stays, policy, seed)


def _assessed(world, draw, table, policy, *, known=False, predicted=None):
    own = np.arange(len(draw.action)), draw.action
    log = Log(
        loss=draw.loss,
        action=draw.action,
        propensity=table[own],
        cluster=draw.stay,
        n_actions=world.n_actions,
        propensities=table,
        predicted=predicted,
        features=visible_rows(draw.trajectories()),
        known=known,
    )
    chosen = POLICIES[policy]
    assessment = assess(log, chosen(world, draw), estimators=("dr", "snips")[predicted is None :])
    head, gain = assessment.estimates[0], assessment.gain
    truth = world.true_risk(chosen)
    return Outcome(
        covers=bool(head.low <= truth <= head.high),
        reliable=assessment.verdict.label == "reliable",
        better=bool(gain.p_value <= 0.05),
        is_better=truth < _clinicians(world) - 1e-9,
    )


def _told(method, truth, clinicians):
    head, gain = method.estimates[0], method.gain
    inside = head.low is not None and head.low <= truth <= head.high
    return Outcome(
        covers=bool(inside),
        reliable=method.verdict == "reliable",
        better=bool(gain.better_at_one_decision),
        is_better=truth < clinicians - 1e-9,
    )


def _clinicians(world):
    return world.true_risk(lambda _, draw: draw.propensities)


def _logit(columns, action, n_actions, *, even=0.0, rounds=400):
    """Multinomial logit by accelerated gradient steps; enough of them to be calibrated.

    A share `even` of the actions is drawn evenly, whatever is seen.
    """
    rows = np.column_stack([columns, np.ones(len(columns))])
    rows = rows / np.maximum(np.abs(rows).mean(axis=0), 1e-9)
    taken, own_action = np.eye(n_actions)[action], (np.arange(len(action)), action)
    step = 2.0 / (np.linalg.norm(rows, 2) ** 2 / len(rows))
    weight = ahead = np.zeros((rows.shape[1], n_actions))
    for turn in range(rounds):
        habit = _softmax(rows @ ahead)
        own = (1 - even) * habit[own_action]
        pull = (own / (own + even / n_actions))[:, None] * (taken - habit)
        new = ahead + step * rows.T @ pull / len(rows)
        ahead, weight = new + turn / (turn + 3) * (new - weight), new
    return (1 - even) * _softmax(rows @ weight) + even / n_actions


def _softmax(score):
    table = np.exp(score - score.max(axis=1, keepdims=True))
    return table / table.sum(axis=1, keepdims=True)
