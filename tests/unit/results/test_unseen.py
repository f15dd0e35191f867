"""Policies are judged on stays that they did not learn from, or it is said."""

from dataclasses import replace

import numpy as np
import pytest
from small_worlds import ward

from etips.errors import DataError
from etips.learn import LoggingPolicy, MostFrequent, RandomPolicy
from etips.results.unseen import ALIKE, NOBODY, UNKNOWN, UNSEEN, Sight, require_unseen_stays
from etips.worlds.clinic import Clinic

DATA = ward(n_stays=60)


def look(policy, data=DATA, **more):
    return require_unseen_stays({"own": policy}, data, **more)["own"]


def test_policies_that_saw_nobody_are_welcome():
    train = DATA.subset(slice(0, 30))
    rest = DATA.subset(slice(30, None))
    assert look(MostFrequent().fit(train), rest) == Sight(False, UNSEEN)
    assert look(RandomPolicy().fit(DATA)) == Sight(False, NOBODY)


def test_what_cannot_be_checked_is_said():
    old = replace(MostFrequent().fit(DATA).policy_, seen=None)
    assert look(old) == Sight(False, UNKNOWN)
    clinic = Clinic().log(20, seed=0)
    assert look(LoggingPolicy().fit(clinic), clinic) == Sight(False, UNKNOWN)
    same = Clinic(n_contexts=1, n_actions=2, decisions_per_stay=1)
    policy = MostFrequent().fit(same.log(100, seed=0))
    assert look(policy, same.log(100, seed=1)) == Sight(False, ALIKE)


@pytest.mark.parametrize(
    ("learned", "told"),
    [(60, "all of the stays"), (30, "30 of the 60 stays"), (5, "some of the"), (55, "some of the")],
)
def test_how_many_are_refused_is_said_unless_they_are_few(learned, told):
    policy = MostFrequent().fit(DATA.subset(slice(0, learned)))
    with pytest.raises(DataError, match=rf"^data: must be unseen; the policy own learned .*{told}"):
        look(policy)
    allowed = look(policy, allow_seen=True)
    assert allowed.in_sample
    assert told in allowed.note


def test_patients_count_where_stays_are_others():
    people = [f"p{i // 2}" for i in range(60)]
    named = replace(DATA, group=np.array(people))
    first, second = named.subset(slice(0, None, 2)), named.subset(slice(1, None, 2))
    with pytest.raises(DataError, match="all of the patients"):
        look(MostFrequent().fit(first), second)
