"""Bounds under hidden confounding hold the truth of the worst hidden state that gamma allows."""

import numpy as np
import pytest
from hidden_worlds import hidden_state

from etips.evaluation import bound_risk, view

pytestmark = pytest.mark.statistical

WORLDS = 200  # one-sided 97.5 %: binomial noise 1.1 points, so 94.2 % is three of them below


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize(("n", "gamma"), [(500, 1.5), (500, 3.0), (4_000, 2.0)])
def test_the_upper_limit_reaches_the_worst_hidden_state_and_the_bound_centres_on_it(
    n, gamma, binary
):
    truth = hidden_state(400_000, gamma=gamma, seed=10_000, binary=binary)[2]
    found = []
    for seed in range(WORLDS):
        log, table, _ = hidden_state(n, gamma=gamma, seed=seed, binary=binary)
        found.append(bound_risk(log, view(log, table), gammas=(gamma,)).bounds[0].risk_most)
    assert np.mean([bound.high >= truth for bound in found]) >= 0.942
    values = np.array([bound.value for bound in found])
    assert abs(values.mean() - truth) < 4 * values.std() / WORLDS**0.5 + 0.01
