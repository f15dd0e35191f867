"""One policy among those of several aims: mixed kinds race, are called back, and end the same."""

import math
from dataclasses import replace

import numpy as np
import pytest
from small_worlds import CLEAR, habitual, small, training

from etips.learn import Settings
from etips.learn.fitting.driver import drive
from etips.learn.learners import policy_search
from etips.learn.learners.aims import Aim
from etips.learn.learners.etips import EtIPS
from etips.learn.learners.foundation import Foundation
from etips.learn.learners.policy_search import PolicySearch
from etips.learn.nuisance.support import LOWEST
from etips.models.encoders.gru import GRU

AIMS = [*(Aim("translated", value) for value in (0.3, 0.5, 0.7)), Aim("beta-IPS")]


@pytest.fixture(scope="module")
def learner():
    return EtIPS(**small(training=training(6)))


@pytest.fixture(scope="module")
def base(learner):
    return drive(learner._lay_foundation(CLEAR.log(200, seed=0), support=0.0))


def search(base, aims, epochs=6, **more):
    settings = Settings(epochs=epochs, batch_size=64, learning_rate=0.02)
    start = base.start.sets(len(aims))
    return drive(PolicySearch(base, aims, start, settings, kl=0.01, **more).run())


def test_the_path_says_what_each_candidate_was_trained_by(base):
    path = search(base, AIMS, racing=False).path
    rules = [c for c in path if c.is_rule]
    assert [c.form for c in rules] == ["translated", "translated", "translated", "beta-IPS"] * 2
    assert all(math.isnan(c.strength) for c in rules)
    assert sum(c.chosen for c in path) == 1


def test_aims_of_other_kinds_beside_them_do_not_change_what_networks_become(base):
    alone = search(base, AIMS[:3], racing=False).path[:3]
    beside = search(base, AIMS, racing=False).path[:3]
    assert [c.risk for c in beside] == pytest.approx([c.risk for c in alone], abs=1e-5)


def test_of_those_within_reach_the_one_that_finds_its_own_baseline_goes_on(base):
    path = search(base, AIMS, 20, racing=True).path
    through = [c.form for c in path[: len(AIMS)] if c.in_race]
    chosen = next(c for c in path if c.chosen)
    assert "beta-IPS" in through
    assert chosen.in_race
    assert len(through) <= 2


def test_constants_can_be_left_out_and_the_paper_takes_the_likeliest_action(base):
    path = search(base, AIMS, racing=False, constants=False).path
    assert all(c.action is None for c in path)
    fit = search(base, AIMS[:2], racing=False, selection="paper")
    assert fit.policy.acts == "likeliest"
    plain = [c for c in fit.path if c.is_rule and c.acts == "draws"]
    assert next(c for c in fit.path if c.chosen).risk == np.min([c.risk for c in plain])


def fitted(log):
    settings = Settings(epochs=6, batch_size=128, learning_rate=0.02)
    own = training(n_folds=2, policy=settings, propensity=settings)
    learner = EtIPS(encoder=GRU(12), training=own, others=False, models="networks", seed=0)
    return learner.fit(log).fit_


def test_a_policy_goes_down_to_the_lowest_floor_where_that_helps_on_held_out_stays():
    fit = fitted(habitual(12_000, gain=0.85))
    assert fit.support == fit.policy.support == LOWEST
    fresh = habitual(seed=1)
    suits, habit = fresh.sequence.T
    rare = fit.policy.predict_proba(fresh).argmax(1)[(suits > 0.3) & (habit > 0.6)]
    assert rare.mean() > 0.8


@pytest.mark.parametrize("change", [{"gain": 0.0}, {"gain": 0.4}, {"gain": 0.85, "lag": 1}])
def test_it_keeps_its_floor_where_little_is_gained_or_the_present_is_hidden(change):
    """A gain of 0.4 leads by seven standard errors, and something hidden could explain it."""
    assert fitted(habitual(12_000, **change)).support > LOWEST


@pytest.mark.parametrize("constant", [True, False])
def test_a_lower_floor_is_for_networks_alone(monkeypatch, constant):
    """It is no reason to keep a constant instead: then they stay on the usual one."""
    learner = EtIPS(**small(training=training(3)), translations=(0.5,))
    base = drive(learner._lay_foundation(CLEAR.log(200, seed=0), support=None))
    asked = []

    def settle(_, judged, __):
        asked.append(judged)
        place = 2 if constant and len(asked) > 1 else 1  # after a set in both forms: a constant
        path = [replace(own, chosen=n == place) for n, own in enumerate(judged.candidates)]
        return tuple(path)

    monkeypatch.setattr(policy_search, "settle", settle)
    monkeypatch.setattr(Foundation, "lowered", lambda own, _: own.with_floor(LOWEST))
    policy = drive(learner.learn_policy(base)).policy
    assert len(asked) == 2
    assert policy.kind == "softmax"
    assert policy.support == (base.support if constant else LOWEST)
