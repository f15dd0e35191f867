"""Supervised answers turned into logged decisions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError
from etips.worlds.bandit import Answers, to_bandit

POLICY = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8], [0.0, 1.0, 0.0]])
LABEL = np.array([0, 1, 1])


def labelled():
    """Two stays of 2 and 3 steps, with three decisions between them."""
    return Trajectories(
        sequence=np.zeros((5, 1), np.float32),
        offsets=np.array([0, 2, 5]),
        schema=Schema(sequence=("x",), n_actions=3, lag=0, provenance={"world": "test"}),
        action=np.array([-1, 0, -1, 1, 1]),
        loss=np.array([np.nan, 0, np.nan, 0, 0]),
    )


def samples(labels):
    """A stay of one step for each label."""
    n = len(labels)
    return Trajectories(
        sequence=np.zeros((n, 1), np.float32),
        offsets=np.arange(n + 1),
        schema=Schema(sequence=("x",), n_actions=3, lag=0, provenance={"world": "test"}),
        action=np.array(labels),
        loss=np.zeros(n),
    )


def answer(policy, labels, *, logging="sampled", seed=0):
    return to_bandit(samples(labels), Answers(policy, {}), logging=logging, seed=seed)


def test_argmax_takes_the_likeliest_action_and_its_probability():
    found = answer(POLICY, LABEL, logging="argmax")
    assert found.action.tolist() == [0, 2, 1]
    assert found.propensity.tolist() == [0.5, 0.8, 1.0]
    assert found.loss.tolist() == [0, 1, 0]
    assert (found.true_logging() == np.eye(3)[[0, 2, 1]]).all()  # in truth there was no choice


@given(st.integers(0, 10_000))
def test_a_sampled_action_has_its_own_probability_as_propensity(seed):
    found = answer(POLICY, LABEL, seed=seed)
    assert (found.propensity == POLICY[np.arange(3), found.action]).all()
    assert (found.propensity > 0).all()
    assert (found.loss == (found.action != LABEL)).all()
    assert found.true_logging() == pytest.approx(POLICY)
    assert found.true_expected_loss().tolist() == [[0, 1, 1], [1, 0, 1], [1, 0, 1]]


def test_sampled_actions_have_the_frequencies_of_the_policy_and_repeat_by_seed():
    policy = np.tile(POLICY[:2], (20_000, 1))
    labels = np.zeros(40_000, int)
    found, again, other = (answer(policy, labels, seed=s).action for s in (0, 0, 1))
    for row in (0, 1):
        share = np.bincount(found[row::2], minlength=3) / 20_000
        assert share == pytest.approx(POLICY[row], abs=0.018)  # 5 standard errors
    assert found.tolist() == again.tolist() != other.tolist()


def test_a_bandit_log_keeps_the_decisions_and_replaces_label_by_action():
    log = to_bandit(labelled(), Answers(POLICY, {"model": "none"}), logging="argmax", seed=0)
    assert log.action.tolist() == [-1, 0, -1, 2, 1]
    assert log.logged_loss.tolist() == [0, 1, 0]
    assert log.logged_propensity.tolist() == [0.5, 0.8, 1.0]
    assert np.isnan(log.loss[[0, 2]]).all()
    assert log.true_expected_loss().tolist() == [[0, 1, 1], [1, 0, 1], [1, 0, 1]]
    assert log.true_risk(POLICY) == pytest.approx((0.5 + 0.9 + 0) / 3)


def test_a_bandit_log_says_where_it_came_from():
    log = to_bandit(labelled(), Answers(POLICY, {"model": "none"}), logging="argmax", seed=3)
    assert log.schema.provenance == {
        "world": "test",
        "model": "none",
        "logging": "argmax",
        "seed": "3",
        "logged_action_accuracy": "0.6667",
    }


def test_another_way_of_logging_and_what_is_no_policy_are_refused_without_values():
    with pytest.raises(SettingError, match=r"^logging: must be 'sampled' or 'argmax'"):
        answer(POLICY, LABEL, logging="greedy")
    broken = POLICY.copy()
    broken[1, 0] = np.nan
    with pytest.raises(DataError, match=r"^probabilities: .*1 of 3 rows fails?, first at row 1\.$"):
        answer(broken, LABEL)
    with pytest.raises(DataError, match=r"^label: must have shape \(3,\)"):
        answer(POLICY, LABEL[:2])
