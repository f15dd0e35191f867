"""What a policy does once somebody follows it."""

import numpy as np

from etips.policies.deployed import Deployed, as_deployed, draw_from, take_likeliest

TABLE = np.array([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2], [0.1, 0.1, 0.8]])
AWAY = np.array([False, False, True])


def test_the_likeliest_action_is_sure_but_where_it_abstains():
    found = take_likeliest(TABLE, AWAY)
    assert found.probabilities.tolist() == [[0, 1, 0], [1, 0, 0], [0.1, 0.1, 0.8]]
    assert found.abstained is AWAY


def test_probabilities_alone_are_a_policy_that_never_abstains():
    found = as_deployed(TABLE)
    assert not found.abstained.any()
    assert found.judged == (found.probabilities, None)
    assert as_deployed(found) is found


def test_where_it_abstains_others_decide():
    theirs = np.full((3, 3), 1 / 3)
    found = Deployed(TABLE, AWAY).left_to(theirs)
    assert (found[:2] == TABLE[:2]).all()
    assert (found[2] == 1 / 3).all()
    assert Deployed(TABLE, AWAY).judged[1] is AWAY


def test_actions_are_drawn_as_often_as_the_probabilities_say_and_never_against_them():
    table = np.tile([0.0, 0.7, 0.0, 0.3, 0.0], (20_000, 1))
    found = draw_from(3, table)
    share = np.bincount(found, minlength=5) / len(found)
    assert set(found) == {1, 3}
    assert abs(share[1] - 0.7) < 0.015  # four standard errors
    assert (found == draw_from(3, table)).all()
    assert (found != draw_from(4, table)).any()
    assert draw_from(0, np.zeros((0, 3))).shape == (0,)
