"""Who trains on: made-up logs with known leaders, how often the best is lost, whole learners."""

from dataclasses import replace

import numpy as np
import pytest
from small_worlds import small, training

from etips.learn import TIPS, EtIPS, Settings
from etips.learn.fitting.candidates import Judged, blank, judge
from etips.learn.fitting.risk_totals import Weighing
from etips.learn.learners import racing
from etips.learn.learners.racing import Race, heat_size, within_reach
from etips.runs.run import Run
from etips.runs.stage import KeptStage
from etips.worlds.clinic import Clinic

N_ACTIONS = 4


def judged(shares, *, n=4000, seed=0, weights=None):
    """Rules that take the one good arm in such shares of the patients, drawn and likeliest."""
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
    return judge([*names, clinicians], totals)


def near(shares, **more):
    """Places within reach of the leader."""
    return sorted(within_reach(judged(shares, **more), len(shares)))


def test_what_is_far_behind_is_out_and_what_is_alike_is_within_reach():
    assert near([0.0, 1.0, 0.999, 0.4]) == [1, 2]


def test_a_set_that_has_left_the_log_behind_is_out():
    assert near([1.0, 0.9, 0.2], weights=[0.2, 1.0, 1.0]) == [1]
    everybody = [0, 1, 2]
    assert near([1.0, 0.9, 0.8], weights=[0.2, 0.2, 0.2]) == everybody  # nobody can be judged


def test_the_best_of_rules_is_seldom_out_of_reach():
    """At most as often as a normal number is beyond `REACH`, since a leader is a lucky one."""
    shares = list(np.linspace(0.6, 1.0, 9))
    lost = sum(8 not in near(shares, n=1500, seed=seed) for seed in range(80))
    assert lost <= 80 * 0.0124 / 2 + 3


TRANSLATIONS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def leader(shares, translations=TRANSLATIONS, *, centre=0.5):
    distance = [abs(own - centre) for own in translations]
    return Race(len(shares), None, None, distance).leaders(judged(shares))[0]


def test_of_those_within_reach_the_nearest_to_the_mean_loss_goes_on():
    assert leader([1.0] * 9, centre=0.38) == 3
    assert leader([1.0, 1.0, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 1.0], centre=0.38) == 1
    assert leader([1.0] * 9, centre=7.0) == 8


def test_one_that_finds_its_own_baseline_goes_on_though_it_moves_more_slowly():
    def first(shares, kinds=(), **more):
        distance = [0.3, 0.1, -1.0, -1.0][: len(shares)]
        found = judged(shares, **more)
        return Race(len(shares), None, None, distance, kinds).leaders(found)

    assert near([1.0, 0.9, 0.5]) == [0]
    assert first([1.0, 0.9, 0.5]) == [2]
    assert first([1.0, 0.9, 0.5], weights=[1.0, 1.0, 0.2]) == [0]  # it has left the log behind
    kinds = ["", "", "", "other"]
    assert first([0.8, 0.7, 0.5, 0.81], kinds) == [2, 3]
    assert first([0.2, 0.1, 0.2, 1.0], kinds) == [3]  # nobody of its kind is within reach


@pytest.mark.parametrize(
    ("epochs", "n_stays", "size"),
    [(20, 1600, (1, 20)), (20, 128, (3, 7)), (9, 120, (3, 7)), (20, 256, (2, 10))],
)
def test_a_heat_is_short_but_not_over_before_something_is_learned(epochs, n_stays, size):
    assert heat_size(Settings(epochs=epochs, batch_size=16), n_stays) == size


@pytest.mark.parametrize(("epochs", "n_stays"), [(1, 100), (2, 16 * 29), (7, 128)])
def test_there_is_no_heat_where_all_is_over_soon(epochs, n_stays):
    assert heat_size(Settings(epochs=epochs, batch_size=16), n_stays) is None


def missed(shares, trained):
    """Who is called back once some sets were trained to the end."""
    standing = judged(shares)
    n = len(shares)
    candidates = [
        replace(own, in_race=place >= 2 * n or place % n in trained)
        for place, own in enumerate(standing.candidates)
    ]
    return racing._Standing(None, Judged(tuple(candidates), standing.totals), n).missed()


def test_one_that_dropped_out_is_called_back_where_it_leads_beyond_noise():
    assert missed([0.5, 1.0, 0.2], {0}) == 1
    assert missed([0.99, 1.0, 0.2], {0}) is None  # a lead that is noise
    assert missed([0.5, 1.0, 0.2], {0, 1}) is None
    assert missed([0.0, 0.6, 0.55], {0}) == 1  # what was trained beats nobody


CLEAR = Clinic(n_contexts=30, n_features=3, n_actions=3, decisions_per_stay=3, effect=0.9)
LONG = Settings(epochs=12, batch_size=64, learning_rate=0.02, patience=12)


def path_of(learner):
    learner.fit(CLEAR.log(400, seed=2))
    return [c for c in learner.path_ if c.is_rule and c.acts == "draws"]


def test_of_another_kind_the_best_goes_on_too_if_it_is_ahead():
    def leaders(shares):
        kinds = ["", "", "other", "other"]
        return Race(4, None, None, [1.0, 0.0, 2.0, 3.0], kinds).leaders(judged(shares))

    assert leaders([0.9, 0.9, 0.8, 0.7]) == [1]
    assert leaders([0.97, 0.97, 0.98, 1.0]) == [1, 3]
    assert leaders([0.2, 0.3, 1.0, 0.9]) == [2]  # nobody of the first kind is within reach


def test_the_path_says_where_each_translation_stopped():
    settings = small() | {"training": replace(training(), policy=LONG)}
    path = path_of(TIPS(**settings | {"translations": (-3.0, 0.3, 0.5, 0.7, 4.0)}))
    ends = [(c.epochs, c.in_race) for c in path]
    assert set(ends) == {(3, False), (12, True)}
    assert 0 < sum(in_race for _, in_race in ends) < 4  # one of the heat, others called back
    assert all(np.isfinite(c.risk) for c in path)  # who dropped out is judged as it stood


def test_what_is_chosen_was_trained_to_the_end(monkeypatch):
    """A heat that keeps the worst: what is chosen after it is called back."""
    monkeypatch.setattr(racing, "within_reach", lambda judged, n_sets: [0])
    monkeypatch.setattr(racing, "LEAD", -9.0)  # the least lead will do
    settings = small() | {"training": replace(training(), policy=LONG)}
    learner = TIPS(**settings | {"translations": (-3.0, 0.3, 0.5)})
    path = path_of(learner)
    assert path[0].in_race
    assert next(c for c in learner.path_ if c.chosen).in_race
    back = next(c for c in path[1:] if c.in_race)
    (alone,) = path_of(TIPS(**settings | {"translations": (back.translation,)}))
    assert back.risk == pytest.approx(alone.risk, abs=1e-6)
    assert back.epochs == alone.epochs == 12


class StoppedError(Exception):
    pass


def test_a_run_stopped_while_one_is_called_back_ends_the_same(monkeypatch, tmp_path):
    monkeypatch.setattr(racing, "within_reach", lambda judged, n_sets: [0])
    monkeypatch.setattr(racing, "LEAD", -9.0)  # the least lead will do
    settings = small() | {"training": replace(training(), policy=LONG)}
    data, keep = CLEAR.log(400, seed=2), KeptStage.keep

    def fit(folder):
        with Run(tmp_path / folder, "x" * 64, every=0) as run:
            return TIPS(**settings | {"translations": (-3.0, 0.3, 0.5)}).fit(data, run=run)

    def stopping(stage, state):
        keep(stage, state)
        if stage.name.startswith("policy-back") and state.epoch == 5:
            raise StoppedError

    whole = fit("whole")
    with monkeypatch.context() as patch:
        patch.setattr(KeptStage, "keep", stopping)
        with pytest.raises(StoppedError):
            fit("stopped")
    again = fit("stopped")
    assert repr(again.path_) == repr(whole.path_)
    assert np.array_equal(again.predict_proba(data), whole.predict_proba(data))


@pytest.mark.parametrize("more", [{"selection": "paper"}, {"init": "random"}])
def test_all_train_to_the_end_by_the_paper_and_from_a_random_start(more):
    settings = small() | {"training": replace(training(), policy=LONG)}
    path = path_of(EtIPS(**settings | {"translations": (0.1, 0.5, 0.9)} | more))
    assert [c.epochs for c in path] == [12] * 3
