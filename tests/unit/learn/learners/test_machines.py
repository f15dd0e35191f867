"""Weighted margins: the hinge, the smoothed ramp, and what they lead to."""

import numpy as np
import pytest
import torch
from sklearn.svm import SVC

from etips.learn.learners.machines import draw_waves, fit_hinge, fit_ramp, ramp


def test_the_ramp_is_that_of_the_article():
    u = torch.tensor([-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0], dtype=torch.float64)
    assert ramp(u).tolist() == pytest.approx([2, 2, 1.75, 1, 0.25, 0, 0])


def test_with_two_actions_the_hinge_is_the_usual_machine():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 2))
    action = (rows @ [1.0, -0.5] + 0.5 * rng.normal(size=300) > 0.2).astype(np.int64)
    weight = rng.uniform(0.2, 2, 300)
    weight /= weight.mean()
    ridge = 0.05
    found = fit_hinge(*map(torch.from_numpy, (rows, action, weight)), 2, ridge).numpy()
    # Scores sum to zero: two columns of the same size, so the ridge counts the line twice.
    machine = SVC(kernel="linear", C=1 / (2 * ridge * 300), tol=1e-6)
    machine.fit(rows, action, sample_weight=weight)
    wanted = machine.decision_function(rows)
    ours = rows @ found[1:, 1] + found[0, 1]
    assert ours == pytest.approx(wanted, abs=0.06)  # the corner is rounded


def test_a_negative_weight_speaks_for_the_other_actions():
    rows, action = torch.zeros(100, 0), torch.arange(100) % 3
    weight = torch.where(action == 1, -2.0, 0.5)
    found = fit_hinge(rows, action, weight, 3, 0.1)
    assert found[0].argmin() == 1


@pytest.mark.parametrize("fit", [fit_hinge, fit_ramp])
def test_the_largest_weight_wins_where_no_action_has_half_of_it(fit):
    """Three actions, 0.4 against 0.3 and 0.3: a machine that needs a majority is lost."""
    rows, action = torch.zeros(3000, 0), torch.arange(3000) % 3
    reward = torch.tensor([0.3, 0.4, 0.3])[action]
    sign = 1 if fit is fit_hinge else -1  # the ramp takes losses
    weight = reward if fit is fit_hinge else reward - reward.mean()
    found = fit(rows, action, sign * weight / weight.abs().mean(), 3, 0.01)
    assert found[0].argmax() == 1


def test_waves_are_drawn_by_seed_and_as_wide_as_told():
    rows = torch.from_numpy(np.random.default_rng(0).normal(size=(500, 4)))
    first, again, other = (draw_waves(rows, 50, width=None, seed=s) for s in (1, 1, 2))
    assert (first[0] == again[0]).all()
    assert (first[0] != other[0]).any()
    wide, narrow = (np.abs(draw_waves(rows, 200, width=w, seed=0)[0]).mean() for w in (10.0, 1.0))
    assert narrow == pytest.approx(10 * wide)
