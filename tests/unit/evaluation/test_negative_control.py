import numpy as np
import pytest

from etips.errors import DataError
from etips.evaluation import Log, difference, logged_risk, snips, view
from etips.evaluation.inference.intervals import Wald
from etips.evaluation.negative_control import control_gain


def world(n, seed, *, right):
    """Sicker patients get action 1; the control is a trace of how sick they are."""
    generator = np.random.default_rng(seed)
    sick = generator.normal(size=n)
    chance = 1 / (1 + np.exp(-1.2 * sick))
    action = (generator.random(n) < chance).astype(int)
    stated = chance if right else np.full(n, action.mean())
    log = Log(
        loss=(generator.random(n) < 1 / (1 + np.exp(-sick))).astype(float),
        action=action,
        propensity=np.where(action == 1, stated, 1 - stated),
        cluster=np.arange(n),
        n_actions=2,
    )
    control = 0.7 * sick + generator.normal(size=n)
    return log, view(log, np.tile([1.0, 0.0], (n, 1))), control


def test_a_gain_in_the_control_gives_wrong_propensities_away():
    log, policy, control = world(1_500, 0, right=False)
    found = control_gain(log, policy, control)
    assert found.warning
    assert found.high < 0
    right = control_gain(*world(1_500, 0, right=True))
    assert not right.warning
    assert right.low < 0 < right.high


def test_false_alarms_are_rare():
    alarms = sum(control_gain(*world(400, seed, right=True)).warning for seed in range(200))
    assert alarms <= 8  # 2 expected; heavy weights cost some


def test_it_is_the_gain_with_the_control_as_the_loss_where_that_is_known():
    log, policy, control = world(300, 1, right=True)
    control[::7] = np.nan
    known = ~np.isnan(control)
    own = control[known], policy.weight[known], log.cluster[known]
    wanted = difference(snips(*own), logged_risk(own[0], own[2]), interval=Wald(0.99))
    found = control_gain(log, policy, control)
    assert (found.difference, found.low, found.high) == pytest.approx(
        (wanted.difference, wanted.low, wanted.high)
    )
    assert found.spread == pytest.approx(own[0].std())


def test_a_control_that_is_nowhere_or_too_short_is_refused():
    log, policy, control = world(50, 2, right=True)
    with pytest.raises(DataError, match=r"^negative_control: must be known in two clusters"):
        control_gain(log, policy, np.full(50, np.nan))
    with pytest.raises(DataError, match=r"^negative_control: must have one entry a decision"):
        control_gain(log, policy, control[:-1])
