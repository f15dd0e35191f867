"""Policies as they are handed over."""

from dataclasses import replace

import numpy as np
import pytest
from small_worlds import CLINIC, small, ward

import etips
from etips.errors import DataError, SettingError
from etips.learn import LoggingPolicy, MostFrequent, PredictiveModel, RandomPolicy
from etips.results.followed_policies import (
    ALIKE,
    NOBODY,
    UNKNOWN,
    UNSEEN,
    as_fitted,
    as_policy,
    follow,
    name_policies,
    require_unseen_stays,
)
from etips.worlds.clinic import Clinic


@pytest.fixture(scope="module")
def learner():
    """Its networks are those of the clinicians, of whom it takes the likeliest action."""
    found = PredictiveModel(**small()).fit(CLINIC.log(60, seed=0))
    same = found.policy_.propensity
    policy = replace(found.policy_, kind="softmax", networks=same, acts="likeliest")
    found.policy_, found.fit_ = policy, replace(found.fit_, policy=policy)
    return found


def test_a_learner_and_its_policy_are_followed_alike(learner):
    stays = CLINIC.log(30, seed=1)
    assert as_fitted(learner) is as_fitted(learner.policy_) is learner.policy_
    one, other = follow(learner, stays), follow(learner.policy_, stays)
    assert (one.deployed.probabilities == other.deployed.probabilities).all()


def test_what_takes_its_likeliest_action_also_says_what_it_would_draw(learner):
    stays = CLINIC.log(30, seed=1)
    policy = replace(learner.policy_, support=0.0)
    found = follow(policy, stays)
    assert (found.deployed.probabilities.argmax(1) == policy.predict(stays)).all()
    assert set(np.unique(found.deployed.probabilities)) == {0, 1}
    assert (found.drawn.probabilities == policy.predict_proba(stays)).all()


def test_what_draws_has_nothing_beside(learner):
    stays = CLINIC.log(30, seed=1)
    policy = replace(learner.policy_, acts="draws")
    found = follow(policy, stays)
    assert found.drawn is None
    assert (found.deployed.probabilities == policy.predict_proba(stays)).all()
    clinicians = PredictiveModel(**small()).fit(stays)
    assert follow(clinicians, stays).drawn is None


def test_a_policy_of_somebody_else_is_its_probabilities():
    stays = CLINIC.log(30, seed=1)
    policy = LoggingPolicy().fit(stays)
    assert as_fitted(policy) is None
    found = follow(policy, stays)
    assert (found.deployed.probabilities == stays.true_logging()).all()
    assert not found.deployed.abstained.any()


class Even:
    def predict_proba(self, data):
        return np.full((data.n_decisions, 2), 0.5)


def test_one_a_list_and_a_mapping():
    assert list(name_policies(Even())) == ["Even"]
    assert list(name_policies([Even(), Even(), etips.SqlRule("low", "1")])) == [
        "Even",
        "Even 2",
        "low",
    ]
    assert list(name_policies({"a": Even(), "b": lambda s: 1})) == ["a", "b"]


def test_a_bare_function_is_a_rule():
    assert isinstance(as_policy(lambda s: 1), etips.Rule)
    assert list(name_policies(lambda s: 1)) == ["rule"]


@pytest.mark.parametrize("nonsense", [None, 3, [], {}, "runs/a", Even, ["runs/a"]])
def test_anything_else_is_refused(nonsense):
    with pytest.raises(SettingError, match="policies: must"):
        name_policies(nonsense)


DATA = ward(n_stays=60)


def look(policy, data=DATA, **more):
    return require_unseen_stays({"own": policy}, data, **more)["own"]


def test_policies_that_saw_nobody_are_welcome():
    train = DATA.subset(slice(0, 30))
    rest = DATA.subset(slice(30, None))
    assert look(MostFrequent().fit(train), rest) == (False, UNSEEN)
    assert look(RandomPolicy().fit(DATA)) == (False, NOBODY)


def test_what_cannot_be_checked_is_said():
    old = replace(MostFrequent().fit(DATA).policy_, seen=None)
    assert look(old) == (False, UNKNOWN)
    clinic = Clinic().log(20, seed=0)
    assert look(LoggingPolicy().fit(clinic), clinic) == (False, UNKNOWN)
    same = Clinic(n_contexts=1, n_actions=2, decisions_per_stay=1)
    policy = MostFrequent().fit(same.log(100, seed=0))
    assert look(policy, same.log(100, seed=1)) == (False, ALIKE)


@pytest.mark.parametrize(
    ("learned", "told"),
    [(60, "all of the stays"), (30, "30 of the 60 stays"), (5, "some of the"), (55, "some of the")],
)
def test_how_many_are_refused_is_said_unless_they_are_few(learned, told):
    policy = MostFrequent().fit(DATA.subset(slice(0, learned)))
    with pytest.raises(DataError, match=rf"^data: must be unseen; the policy own learned .*{told}"):
        look(policy)
    in_sample, note = look(policy, allow_seen=True)
    assert in_sample
    assert told in note


def test_patients_count_where_stays_are_others():
    people = [f"p{i // 2}" for i in range(60)]
    named = replace(DATA, group=np.array(people))
    first, second = named.subset(slice(0, None, 2)), named.subset(slice(1, None, 2))
    with pytest.raises(DataError, match="all of the patients"):
        look(MostFrequent().fit(first), second)
