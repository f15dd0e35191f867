"""The policies of a study's folds, written, read and put together."""

import numpy as np
import pytest

from etips.policies.deployed import Deployed, take_likeliest
from etips.results.followed_policies import Followed, as_followed
from etips.studies.fold_policies import join_folds, load_followed, mix_folds, save_followed

CHANCES = np.array([[0.7, 0.3], [0.2, 0.8]])
AWAY = np.array([False, True])
SURE = Followed(take_likeliest(CHANCES, AWAY), Deployed(CHANCES, AWAY))


@pytest.mark.parametrize("policy", [SURE, as_followed(CHANCES)], ids=["sure", "drawn"])
def test_what_is_written_is_read(tmp_path, policy):
    save_followed(policy, tmp_path)
    found = load_followed(tmp_path)
    assert (found.deployed.probabilities == policy.deployed.probabilities).all()
    assert (found.deployed.abstained == policy.deployed.abstained).all()
    assert (found.drawn is None) == (policy.drawn is None)
    if policy.drawn is not None:
        assert (found.drawn.probabilities == CHANCES).all()


def test_folds_that_share_a_test_part_are_mixed():
    one, other = as_followed(np.array([[1.0, 0.0]])), as_followed(np.array([[0.0, 1.0]]))
    found = mix_folds([one, other], None)
    assert found.deployed.probabilities == pytest.approx(np.array([[0.5, 0.5]]))
    assert found.drawn is None


def test_a_mixture_abstains_where_all_do_and_leaves_part_of_the_rest_to_the_clinicians():
    clinicians = np.array([[0.5, 0.5], [0.6, 0.4]])
    both = mix_folds([SURE, SURE], clinicians)
    assert both.deployed.abstained.tolist() == [False, True]
    assert both.drawn.probabilities[0] == pytest.approx([0.7, 0.3])
    one = mix_folds([SURE, as_followed(np.array([[1.0, 0.0], [1.0, 0.0]]))], clinicians)
    assert not one.deployed.abstained.any()
    assert one.deployed.probabilities.tolist() == [[1.0, 0.0], pytest.approx([0.8, 0.2])]


def test_folds_that_were_held_out_once_answer_for_themselves():
    folds = [np.array([True, False, True]), np.array([False, True, False])]
    found = join_folds([SURE, as_followed(np.array([[0.0, 1.0]]))], folds)
    assert found.deployed.probabilities.tolist() == [[1.0, 0.0], [0.0, 1.0], [0.2, 0.8]]
    assert found.deployed.abstained.tolist() == [False, False, True]
    assert found.drawn.probabilities.tolist() == [[0.7, 0.3], [0.0, 1.0], [0.2, 0.8]]
