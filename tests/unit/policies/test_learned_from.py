"""What a policy keeps of the log it learned from: hashes of the stays, and aggregates."""

import json
from dataclasses import replace

import numpy as np
import pytest
from small_worlds import CLINIC, ward

import etips
from etips.data.coded import Coded
from etips.data.splitting import split
from etips.data.tables.arrays import from_arrays
from etips.policies.learned_from import Origin, SeenStays, are_counted, make_salt, may_be_numbers
from etips.worlds.two_hospitals import simulate_place

SALT = b"sixteen bytes it"


def seen(stays):
    return SeenStays.of(stays, salt=SALT)


def cohort(n, *, seed=0, names=None, groups=None, width=4):
    """One decision a stay, continuous features."""
    rng = np.random.default_rng(seed)
    data = from_arrays(
        rng.normal(size=(n, width)), rng.integers(0, 3, n), rng.random(n), groups=groups
    )
    return data if names is None else replace(data, stay=np.asarray(names))


def discrete(n, seed, n_rows=4):
    """One of a few rows each, three actions: different stays often hold the same."""
    rng = np.random.default_rng(seed)
    rows = np.eye(n_rows)[rng.integers(0, n_rows, n)]
    return from_arrays(rows, rng.integers(0, 3, n), rng.integers(0, 2, n))


def test_the_same_stays_are_known_and_others_are_not():
    train, test = split(cohort(300), test=0.4)
    assert seen(train).overlap(train) == (180, 0, False)
    assert seen(train).overlap(test) == (0, 0, False)
    assert seen(train).overlap(cohort(300)).n_stays == 180


def test_stays_that_are_numbered_alike_are_not_the_same():
    """Two tables without identifiers: both count their rows from nought."""
    assert seen(cohort(300, seed=0)).overlap(cohort(200, seed=1)) == (0, 0, False)
    one, other = (split(cohort(300, seed=s), test=0.5)[0] for s in (0, 1))
    assert seen(one).overlap(other).n_stays == 0


def test_stays_that_are_numbered_anew_are_known_by_what_they_hold():
    whole = cohort(300)
    features, action = np.asarray(whole.sequence), whole.action
    part = from_arrays(features[200:], action[200:], np.zeros(100))
    assert seen(whole).overlap(part).n_stays == 100
    assert seen(whole.subset(slice(0, 201))).overlap(part).n_stays == 1


def test_another_loss_and_later_steps_do_not_hide_a_stay():
    rng = np.random.default_rng(0)
    features, action = rng.normal(size=(60, 5, 3)), rng.integers(0, 2, (60, 5))
    loss = rng.random((60, 5))
    early = from_arrays(features[:, :3], action[:, :3], loss[:, :3])
    late = from_arrays(features, action, loss)
    assert seen(early).overlap(late).n_stays == 60
    assert seen(late).overlap(from_arrays(features, action, 1 - loss)).n_stays == 60


def test_real_names_are_enough_whatever_the_stays_hold_today():
    names = [f"adm {i}" for i in range(50)]
    one, other = cohort(50, seed=0, names=names), cohort(50, seed=1, names=names)
    assert seen(one).overlap(other).n_stays == 50
    large = np.arange(50) * 1009 + 200_000
    one, other = cohort(50, seed=0, names=large), cohort(50, seed=1, names=large)
    assert seen(one).overlap(other).n_stays == 50
    assert seen(one).overlap(cohort(50, seed=1, names=large.astype(str))).n_stays == 50


def test_other_stays_of_the_same_patients_are_known():
    people = np.array([f"p{i // 2}" for i in range(80)])
    one = cohort(40, seed=0, names=[f"a{i}" for i in range(40)], groups=people[:40])
    other = cohort(40, seed=1, names=[f"b{i}" for i in range(40)], groups=people[30:70])
    assert seen(one).overlap(other) == (0, 5, False)
    assert seen(one).overlap(replace(other, group=None)) == (0, 0, False)


def test_patients_that_are_counted_are_nobody():
    groups = np.arange(40) // 2
    one, other = cohort(40, seed=0, groups=groups), cohort(40, seed=1, groups=groups)
    assert seen(one).overlap(other) == (0, 0, False)


@pytest.mark.parametrize("n_rows", [2, 6, 40, 2000])
def test_stays_that_often_hold_the_same_are_told_apart_by_more_than_chance(n_rows):
    for seed in range(8):
        one, other = discrete(300, 2 * seed, n_rows), discrete(200, 2 * seed + 1, n_rows)
        assert seen(one).overlap(other).n_stays == 0
        assert seen(one).overlap(one).n_stays == 300
        assert seen(one).overlap(one.subset(slice(50, 200))).n_stays == 150


def test_a_few_stays_that_hold_the_same_are_chance_unless_values_tell_them_apart():
    """Some thousand possible stays: two of them meet now and then, also where none is repeated."""
    coarse = [discrete(150, seed, n_rows=3000) for seed in range(40)]
    fine = cohort(200)
    met = [seen(one).overlap(other) for one, other in zip(coarse[::2], coarse[1::2], strict=True)]
    assert not any(overlap.n_stays for overlap in met)
    assert any(
        np.isin(one.sequence.argmax(1), other.sequence.argmax(1)).any()
        for one, other in zip(coarse[::2], coarse[1::2], strict=True)
    )
    one = from_arrays(np.asarray(fine.sequence)[:100], fine.action[:100], np.zeros(100))
    other = from_arrays(np.asarray(fine.sequence)[99:], fine.action[99:], np.zeros(101))
    assert seen(one).overlap(other).n_stays == 1


def test_simulated_stays_are_numbered_anew_for_each_seed():
    train, test = CLINIC.log(200, seed=0), CLINIC.log(200, seed=1)
    assert seen(train).overlap(test).n_stays == 0
    assert seen(train).overlap(train).n_stays == 200
    learn, held = split(train, test=0.3)
    assert seen(learn).overlap(held).n_stays == 0


def test_a_coded_stay_and_a_plain_one_are_the_same():
    plain = cohort(30, names=[f"x{i}" for i in range(30)])
    rows = np.asarray(plain.sequence)
    coded = replace(plain, sequence=Coded(rows[::-1].copy(), np.arange(30, dtype=np.int32)[::-1]))
    other = replace(coded, stay=np.array([f"y{i}" for i in range(30)]))
    assert seen(plain).overlap(other).n_stays == 30


def test_zero_has_no_sign_and_what_is_missing_is_missing():
    rows = np.array([[0.0, np.nan], [1.0, 2.0]], np.float32)
    bits = np.array([0x7FC00001], np.uint32).view(np.float32)
    same = np.array([[-0.0, bits[0]], [1.0, 2.0]], np.float32)
    stays = cohort(2, width=2)
    schema = replace(stays.schema, indicators=("x1",))
    one, other = (replace(stays, sequence=r, schema=schema) for r in (rows, same))
    other = replace(other, stay=np.array(["a", "b"]))
    assert seen(one).overlap(other).n_stays == 2


def test_hashes_of_two_policies_cannot_be_compared():
    data = ward()
    one, other = (SeenStays.of(data, salt=make_salt(data, part)) for part in (b"1", b"2"))
    for name in ("names", "beginnings", "contents"):
        assert not np.isin(getattr(one, name), getattr(other, name)).any()


def test_what_may_be_a_number_and_what_is_counted():
    assert may_be_numbers(np.array([3, 0, 17]))
    assert not may_be_numbers(np.array([3, 0, 1700]))
    assert not may_be_numbers(np.array(["1", "2"]))
    assert are_counted(np.array([2, 0, 1, 1]))
    assert are_counted(np.array([2, 1]))
    assert not are_counted(np.array([0, 2]))
    assert not are_counted(np.array(["0", "1"]))


def test_a_learner_remembers_whom_it_learned_from_unless_it_learned_from_nobody():
    data = ward()
    assert etips.MostFrequent().fit(data).policy_.seen.overlap(data).n_stays == data.n_stays
    assert etips.RandomPolicy().fit(data).policy_.seen is None


@pytest.fixture(scope="module")
def log():
    return simulate_place(200, seed=0)


def test_an_origin_is_shares_and_a_mean(log):
    origin = Origin.of(log)
    taken = np.bincount(log.logged_action, minlength=9) / log.n_decisions
    assert origin.action_shares == pytest.approx(taken)
    assert origin.mean_loss == pytest.approx(log.logged_loss.mean())
    again = Origin.from_json(json.loads(json.dumps(origin.to_json())), 9)
    assert again == origin


def test_what_a_few_had_is_not_remembered(log):
    rare = log.subset(slice(0, 25))
    origin = Origin.of(rare)
    people = [np.unique(rare.cluster[rare.logged_action == a]).size for a in range(9)]
    assert min(people) < 11
    assert all(
        share is None for share, n in zip(origin.action_shares, people, strict=True) if 0 < n < 11
    )
    few = np.zeros(log.n_steps)
    few[log.decision_rows[:4]] = 1
    assert Origin.of(type(log)(**{**vars_of(log), "loss": few, "truth": None})).mean_loss is None


def vars_of(log):
    names = ("sequence", "offsets", "schema", "action", "static", "stay", "step")
    return {name: getattr(log, name) for name in names}


@pytest.mark.parametrize(
    "document", [{"action_shares": [0.5], "mean_loss": 0.1}, {"action_shares": [0.5] * 9},
                 {"action_shares": ["x"] * 9, "mean_loss": 0.1}, 7,
                 {"action_shares": [float("inf")] * 9, "mean_loss": None}],
)  # fmt: skip
def test_an_origin_that_is_none_is_refused(document):
    with pytest.raises((ValueError, TypeError, KeyError)):
        Origin.from_json(document, 9)
