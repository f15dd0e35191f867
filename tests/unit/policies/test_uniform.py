"""What a policy without a preference recommends."""

import numpy as np

from etips.policies.uniform import draw_actions


def test_the_same_seed_draws_the_same_and_every_action_is_as_likely():
    first = draw_actions(1, 5, 1000)
    assert (first == draw_actions(1, 5, 1000)).all()
    assert (first != draw_actions(2, 5, 1000)).any()
    assert np.bincount(first, minlength=5).min() > 150
    assert first.max() == 4
