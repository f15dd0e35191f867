"""Two hospitals with a known shift: what is true there, and that it is."""

import numpy as np
import pytest

import etips
from etips.data.alignment import align
from etips.errors import DataError
from etips.learn import Settings, Training
from etips.policies.policy import FittedPolicy
from etips.results.followed_policies import follow, true_risk
from etips.worlds.two_hospitals import FIRST, LAVISH, SECOND, simulate_place

SHORT = Settings(epochs=4, batch_size=64, learning_rate=0.01)
QUICK = Training(n_folds=2, device="cpu", propensity=SHORT, outcome=SHORT, policy=SHORT)


@pytest.mark.parametrize("place", [FIRST, SECOND])
def test_actions_and_losses_are_drawn_as_the_truth_says(place):
    stays = simulate_place(4000, seed=5, place=place)
    logging = stays.true_logging()
    assert logging.sum(axis=1) == pytest.approx(1)
    taken = np.bincount(stays.logged_action, minlength=9) / stays.n_decisions
    assert np.abs(logging.mean(axis=0) - taken).max() < 0.01
    assert stays.logged_loss.mean() == pytest.approx(stays.true_risk(logging), abs=0.01)
    for action in range(9):  # given that it was taken, the loss is the one expected of it
        chosen = stays.logged_action == action
        wanted = stays.true_expected_loss()[chosen, action].mean()
        error = 4 * np.sqrt(0.25 / chosen.sum())
        assert stays.logged_loss[chosen].mean() == pytest.approx(wanted, abs=error)


def test_the_second_differs_in_patients_doses_and_practice():
    one, two = (simulate_place(800, seed=3, place=place) for place in (FIRST, SECOND))
    assert two.static[:, 0].mean() > one.static[:, 0].mean() + 3
    fluid, other = (own.schema.recipe.doses[0].edges[0] for own in (one, two))
    assert other > 1.4 * fluid
    assert two.true_logging()[:, 0].mean() < one.true_logging()[:, 0].mean() - 0.02


def test_a_policy_of_the_first_is_judged_in_the_second_by_its_own_doses():
    """The external estimate holds the truth; without the first one's doses it is refused."""
    one = simulate_place(200, seed=11)
    two = simulate_place(200, seed=12, place=SECOND)
    learner = etips.DirectMethod(training=QUICK, seed=0).fit(one)
    policy = learner.policy_
    assert isinstance(policy, FittedPolicy)
    with pytest.raises(DataError, match="are not those the policy was fitted on"):
        policy.answer(two)
    results = etips.evaluate({"direct": policy}, align(two, policy.schema))
    known = simulate_place(200, seed=12, place=SECOND, doses=one.schema.recipe.doses)
    truth = true_risk(follow(policy, known).deployed, known)
    head = results.methods[0].estimates[0]
    assert head.low <= truth <= head.high
    assert head.high - head.low < 0.25


def test_a_decision_that_sees_its_own_step_has_the_same_world_without_doses_as_features():
    one, two = (simulate_place(60, seed=4, place=LAVISH, lag=lag) for lag in (0, 1))
    assert (one.schema.lag, one.schema.dosed_features) == (0, ())
    assert one.schema.sequence == two.schema.sequence[:3]
    assert one.schema.recipe == two.schema.recipe
    assert (one.action == two.action).all()
    assert (one.loss == two.loss).all()
    # What lag 1 shows a row earlier is what lag 0 shows at the step itself.
    own, earlier = one.sequence, two.sequence[:, :3]
    inside = np.ones(len(own), bool)
    inside[one.offsets[:-1]] = False
    assert (own[inside] == earlier[np.flatnonzero(inside) - 1]).all()
