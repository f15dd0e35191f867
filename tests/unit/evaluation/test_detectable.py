"""How large an effect a log could show: by hand, by simulation, and with less overlap."""

import numpy as np
import pytest

from etips.evaluation.detectable import FACTOR, detectable, detectable_differences


def trial(n, effect, generator, *, share=0.5, each=1):
    """A randomised log of one binary loss: action 1 lowers its probability by `effect`."""
    action = (generator.random(n) < share).astype(np.int64)
    base = np.repeat(generator.uniform(0.2, 0.6, n // each), each)  # what stays have in common
    loss = (generator.random(n) < base - effect * action).astype(float)
    return action, loss, np.repeat(np.arange(n // each), each)


def test_the_error_of_a_worked_case():
    """Four patients, two of them treated, all with propensity one half."""
    action = np.array([1, 1, 0, 0])
    loss = np.array([1.0, 0.0, 1.0, 1.0])
    # Weighted mean 0.5, logged mean 0.75. u = (l - .5) / 2 - (l - .75) / 4 for the treated.
    moved = [0.25 - 0.0625, -0.25 + 0.1875, -0.0625, -0.0625]
    error = np.sqrt(4 / 3 * np.sum(np.square(moved)))
    found = detectable(1, action, loss, np.full(4, 0.5), np.arange(4))
    assert found.std_error == pytest.approx(error)
    assert found.difference == pytest.approx(2.8015852 * error)
    assert (found.share, found.effective_n) == (0.5, 2.0)


@pytest.mark.parametrize(("each", "share"), [(1, 0.5), (4, 0.3)])
def test_a_difference_of_that_size_is_found_in_four_of_five_logs(each, share):
    """Always treating against what was done: a gain of effect times those not treated."""
    n, generator = 1200, np.random.default_rng(0)
    action, loss, cluster = trial(n, 0.0, generator, share=share, each=each)
    chance = np.full(n, share)
    wanted = detectable(1, action, loss, chance, cluster).difference
    effect = wanted / (1 - share)
    found = 0
    for _ in range(1000):
        action, loss, cluster = trial(n, effect, generator, share=share, each=each)
        own = detectable(1, action, loss, chance, cluster)
        gain = loss.mean() - loss[action == 1].mean()
        found += abs(gain) > 1.959964 * own.std_error
    assert 0.75 < found / 1000 < 0.87


def test_propensities_that_depend_on_the_patient_leave_less_to_be_seen():
    generator = np.random.default_rng(1)
    n = 3000
    severity = generator.normal(size=n)
    loss = (generator.random(n) < 0.4).astype(float)
    mixed = (generator.random(n) < 0.5).astype(np.int64)
    sorted_out = (generator.random(n) < 1 / (1 + np.exp(-3 * severity))).astype(np.int64)
    cases = [
        detectable_differences(severity[:, None], action, loss, np.arange(n), most=2)[0]
        for action in (mixed, sorted_out)
    ]
    assert cases[0].difference < 0.75 * cases[1].difference
    assert cases[0].effective_n > cases[1].effective_n
    assert cases[0].std_error == pytest.approx(np.sqrt(0.24 / n), rel=0.15)


def test_a_large_log_is_cut_down_and_told_at_its_own_size(monkeypatch):
    generator = np.random.default_rng(2)
    action, loss, cluster = trial(8000, 0.0, generator, each=2)
    features = generator.normal(size=(8000, 3))
    whole = detectable_differences(features, action, loss, cluster)[0]
    monkeypatch.setattr("etips.evaluation.detectable.MOST_DECISIONS", 2000)
    part = detectable_differences(features, action, loss, cluster)[0]
    assert part.std_error == pytest.approx(whole.std_error, rel=0.15)
    assert part.effective_n == pytest.approx(whole.effective_n, rel=0.15)


def test_losses_that_are_not_known_and_logs_of_next_to_nobody_tell_nothing():
    generator = np.random.default_rng(3)
    action, loss, cluster = trial(400, 0.0, generator)
    holes = np.where(np.arange(400) < 100, np.nan, loss)
    features = np.zeros((400, 0))
    kept = detectable_differences(features[100:], action[100:], loss[100:], cluster[100:])
    assert detectable_differences(features, action, holes, cluster) == kept
    assert detectable_differences(features[:3], action[:3], loss[:3], cluster[:3]) == []
    assert detectable(2, action, loss, np.full(400, 0.5), cluster) is None
    assert pytest.approx(2.80, abs=0.005) == FACTOR
