"""What only a simulated world knows, and risks that follow from it."""

from dataclasses import replace

import numpy as np
import pytest
from random_cohorts import Cohort, with_truth

from etips.data import Truth
from etips.errors import DataError

BIG = Cohort(seed=5, n_stays=30, longest=6, eligible=True)


def test_the_tables_cannot_be_written_to_and_the_callers_own_can():
    own = np.full((3, 2), 0.5)
    truth = Truth(np.zeros(4, np.int32), own, own)
    for values in (truth.code, truth.expected_loss, truth.logging):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 0
    own[0] = 1.0


def test_true_risk_is_the_mean_of_the_policys_expected_loss():
    data = with_truth(BIG.make())
    policy = np.random.default_rng(1).dirichlet(np.ones(data.n_actions), data.n_decisions)
    total = 0.0
    for number, row in enumerate(data.decision_rows):
        for action in range(data.n_actions):
            code = data.truth.code[row]
            total += policy[number, action] * data.truth.expected_loss[code, action]
    assert data.true_risk(policy) == pytest.approx(total / data.n_decisions, rel=1e-12)
    assert data.true_expected_loss().shape == data.true_logging().shape == policy.shape
    assert np.array_equal(
        data.true_logging(), data.truth.logging[data.truth.code[data.decision_rows]]
    )


def test_true_risk_refuses_another_shape_and_real_data():
    data = with_truth(BIG.make())
    with pytest.raises(DataError, match=r"^probabilities: must have one row a decision"):
        data.true_risk(np.ones((2, 2)))
    with pytest.raises(DataError, match=r"^truth: is known only in simulated data\.$"):
        replace(data, truth=None).true_risk(np.ones((2, 2)))
