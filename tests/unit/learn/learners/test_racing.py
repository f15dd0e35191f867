"""Who trains on: made-up logs with known leaders, how often the best is lost, whole learners."""

from dataclasses import replace

import numpy as np
import pytest
from small_worlds import small, training

from etips.learn import TIPS, EtIPS, Settings
from etips.learn.fitting.candidates import blank, judge
from etips.learn.fitting.risk_totals import Weighing
from etips.learn.learners import racing
from etips.learn.learners.racing import race_between, within_reach
from etips.worlds.clinic import Clinic

N_ACTIONS = 4


def heat(shares, *, n=4000, seed=0, most=99, weights=None):
    """Places that go on of rules which take the one good arm in such shares of the patients."""
    rng = np.random.default_rng(seed)
    action, context = rng.integers(0, N_ACTIONS, n), rng.random(n)
    loss = (rng.random(n) < np.where(action == 0, 0.3, 0.6)).astype(float)
    chosen = [np.where(context < share, action == 0, action == 1).astype(float) for share in shares]
    drawn = [0.5 * own + 0.5 / N_ACTIONS for own in chosen]
    if weights is not None:
        chosen, drawn = ([w * o for w, o in zip(weights, p, strict=True)] for p in (chosen, drawn))
    names = [blank(place / 10, None, acts) for acts in ("draws", "likeliest") for place in shares]
    clinicians = replace(blank(np.nan, None), clinicians=True)
    usual = np.full(n, 1 / N_ACTIONS)
    totals = Weighing(usual, loss, np.arange(n)).totals([*drawn, *chosen, usual])
    return within_reach(judge([*names, clinicians], totals), len(shares), most=most)


def test_what_is_far_behind_is_out_and_what_is_alike_goes_on():
    assert heat([0.0, 1.0, 0.999, 0.4]) == [1, 2]


def test_of_those_in_reach_the_best_go_on():
    close = [1.0, 0.999, 1.0, 0.998, 1.0]
    assert len(heat(close, n=300)) > 2
    (leader,) = heat(close, n=300, most=1)
    assert leader in heat(close, n=300, most=2)
    assert len(heat(close, n=300, most=2)) == 2


def test_a_set_that_has_left_the_log_behind_is_out():
    assert heat([1.0, 0.9, 0.2], weights=[0.2, 1.0, 1.0]) == [1]
    everybody = [0, 1, 2]
    assert heat([1.0, 0.9, 0.8], weights=[0.2, 0.2, 0.2]) == everybody  # nobody can be judged


def test_the_best_of_rules_is_seldom_lost_and_costs_little_where_it_is():
    """True risks are 0.6 less 0.3 of the share."""
    shares = np.linspace(0.6, 1.0, 9)
    lost, cost = 0, []
    for seed in range(60):
        kept = heat(list(shares), n=1500, seed=seed, most=3)
        lost += 8 not in kept
        cost.append(0.3 * (1.0 - shares[kept].max()))
    assert lost <= 12
    assert np.mean(cost) < 0.005


def test_heats_are_in_the_first_quarter_and_leave_a_third_and_then_a_ninth(monkeypatch):
    asked = []
    monkeypatch.setattr(racing, "within_reach", lambda _, n, most: asked.append(most) or [0])
    race = race_between(9, 5, 20, lambda *_: None, lambda _: None)
    assert race.heats == (2, 5)
    assert race.judge(None, list(range(9)), 2) == [0]
    assert race.judge(None, [3, 7, 8], 5) == [3]
    assert asked == [3, 1]
    assert race.judge(None, [4], 5) == [4]  # nobody to judge
    assert len(asked) == 2


@pytest.mark.parametrize(("n_sets", "epochs"), [(1, 20), (9, 1)])
def test_there_is_no_race_for_one_and_none_in_a_single_epoch(n_sets, epochs):
    assert race_between(n_sets, 5, epochs, lambda *_: None, lambda _: None) is None


CLEAR = Clinic(n_contexts=30, n_features=3, n_actions=3, decisions_per_stay=3, effect=0.9)
LONG = Settings(epochs=12, batch_size=64, learning_rate=0.02, patience=12)


def path_of(learner):
    learner.fit(CLEAR.log(400, seed=2))
    return [c for c in learner.path_ if c.is_rule and c.acts == "draws"]


def test_the_path_says_where_each_translation_stopped():
    settings = small() | {"training": replace(training(), policy=LONG)}
    path = path_of(TIPS(**settings | {"translations": (-3.0, 0.3, 0.5, 0.7, 4.0)}))
    epochs = [c.epochs for c in path]
    assert max(epochs) == 12
    assert min(epochs) == 1
    assert sum(epoch == 12 for epoch in epochs) < 3
    assert all(np.isfinite(c.risk) for c in path)  # who dropped out is judged as it stands


@pytest.mark.parametrize("more", [{"selection": "paper"}, {"init": "random"}])
def test_all_train_to_the_end_by_the_paper_and_from_a_random_start(more):
    settings = small() | {"training": replace(training(), policy=LONG)}
    path = path_of(EtIPS(**settings | {"translations": (0.1, 0.5, 0.9)} | more))
    assert [c.epochs for c in path] == [12] * 3
