"""Stays of a simulated hospital."""

import numpy as np

from etips.worlds.mimic3_stays import DAY, HOUR, simulate_stays


def stays(n=400, seed=0):
    return simulate_stays(np.random.default_rng(seed), first=0, n_stays=n)


def test_the_seed_decides():
    one, again, other = stays(), stays(), stays(seed=1)
    assert np.array_equal(one.start, again.start)
    assert not np.array_equal(one.start, other.start)


def test_stays_of_one_patient_follow_one_another():
    made = stays()
    same = made.subject[1:] == made.subject[:-1]
    assert 0.1 < same.mean() < 0.4
    leaves = made.start + made.hours * HOUR
    assert (made.start[1:][same] > leaves[:-1][same]).all()
    assert (np.diff(made.admission)[~same] > 0).all()


def test_there_are_minors_the_very_old_the_well_and_the_dying_of_both_systems():
    made = stays()
    years = (made.start - made.birth) / (365.25 * DAY)
    assert ((years < 18).any(), (years > 250).any()) == (True, True)
    assert (made.severity == -3).sum() > 5
    dead = made.death > 0
    soon = np.abs(made.death - made.start - made.hours * HOUR) < 2 * DAY
    assert 0 < (dead & soon).sum() < dead.sum() < made.stay.size / 2
    assert 0.3 < made.metavision.mean() < 0.7


def test_every_hour_of_every_stay_is_there_once():
    made = stays(5)
    owner, hour = made.every_hour()
    assert owner.size == made.hours.sum()
    assert [hour[owner == number].max() + 1 for number in range(5)] == made.hours.tolist()
