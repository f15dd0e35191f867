"""The feedback dictionary of obp, in and out."""

import numpy as np
import pytest
from hypothesis import given
from random_cohorts import Cohort, cohorts
from strategies import fingerprint

from etips.data import from_obp, load_trajectories, obp_propensities, to_obp
from etips.errors import DataError, SettingError


def real(n=6, seed=0):
    """As `OpenBanditDataset.obtain_batch_bandit_feedback` gives it: three positions."""
    rng = np.random.default_rng(seed)
    return {
        "n_rounds": n,
        "n_actions": 4,
        "action": rng.integers(0, 4, n),
        "position": np.arange(n) % 3,
        "reward": rng.integers(0, 2, n),
        "pscore": np.full(n, 0.25),
        "context": rng.normal(size=(n, 2)),
        "action_context": rng.normal(size=(4, 5)),
    }


def test_the_position_of_a_round_is_part_of_what_is_visible():
    feedback = real()
    data = from_obp(feedback)
    assert (data.n_decisions, data.n_actions) == (6, 4)
    rows = np.asarray(data.sequence)
    assert rows.shape == (6, 5)
    assert rows[:, :2] == pytest.approx(feedback["context"], abs=1e-6)
    assert (rows[:, 2:] == np.eye(3)[feedback["position"]]).all()
    assert data.logged_propensity.tolist() == [0.25] * 6


def test_one_position_for_all_says_nothing():
    feedback = real() | {"position": np.zeros(6, int)}
    assert from_obp(feedback).sequence.shape == (6, 2)


def test_parts_in_which_a_position_does_not_occur_can_still_be_alike():
    feedback = real() | {"position": np.zeros(6, int)}
    assert from_obp(feedback, n_positions=3).sequence.shape == (6, 5)
    with pytest.raises(SettingError, match=r"^n_positions: must be more than every position"):
        from_obp(real(), n_positions=2)


def test_the_whole_table_of_synthetic_feedback_is_that_of_each_rounds_position():
    rng = np.random.default_rng(1)
    table = rng.dirichlet(np.ones(4), size=(6, 3)).swapaxes(1, 2)  # (rounds, actions, positions)
    feedback = real() | {"pi_b": table}
    found = obp_propensities(feedback)
    for row, position in enumerate(feedback["position"]):
        assert (found[row] == table[row, :, position]).all()
    alone = real() | {"pi_b": table[:, :, :1], "position": None}
    assert (obp_propensities(alone) == table[:, :, 0]).all()
    assert (obp_propensities(real() | {"pi_b": table[:, :, 0]}) == table[:, :, 0]).all()
    assert obp_propensities(real()) is None
    with pytest.raises(DataError, match=r"^feedback, position: must be a column of pi_b"):
        obp_propensities(real() | {"pi_b": table[:, :, :2]})
    with pytest.raises(DataError, match=r"^feedback, pi_b: must have shape"):
        obp_propensities(real() | {"pi_b": table[:2]})


def test_reward_is_one_minus_loss_in_both_directions():
    feedback = {
        "n_rounds": 3,
        "n_actions": np.int64(4),
        "context": np.array([[1.0, 2], [3, 4], [5, 6]]),
        "action": np.array([0, 2, 1]),
        "reward": np.array([1, 0, 0.25]),
        "pscore": np.array([0.5, 0.25, 1]),
        "position": None,
    }
    data = from_obp(feedback)
    assert data.logged_loss.tolist() == [0, 1, 0.75]
    again = to_obp(data)
    assert set(again) == set(feedback)
    for name, value in feedback.items():
        assert np.array_equal(again[name], value), name


@given(cohorts)
def test_stays_go_to_obp_and_back_as_one_round_a_decision(cohort):
    data = cohort.make()
    feedback = to_obp(data)
    back = from_obp(feedback)
    assert back.n_decisions == data.n_decisions
    assert np.allclose(back.logged_loss, data.logged_loss, atol=1e-15)
    assert np.array_equal(back.logged_action, data.logged_action)
    for number, (stay, step) in enumerate(zip(*data.decisions(), strict=True)):
        seen = data.sequence[data.offsets[stay] + step - data.lag]
        expected = [*seen, *data.static[stay]]
        assert feedback["context"][number].tolist() == expected


def test_data_from_obp_can_be_saved(tmp_path):
    data = from_obp({"context": [[1.0]], "action": [0], "reward": [1], "n_actions": np.int64(3)})
    data.save(tmp_path / "saved")
    assert fingerprint(load_trajectories(tmp_path / "saved")) == fingerprint(data)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reward": None}, r"^feedback, reward: must be there\.$"),
        ({"context": None}, r"^feedback, context: must be there\.$"),
        ({"position": [-1]}, r"^feedback, position: must be whole and not negative; 1 of 1 rows"),
        ({"position": [0, 1]}, r"^feedback, position: must be one number a round\.$"),
        ({"n_rounds": 2}, r"^feedback, n_rounds: must be the number of rows of the context\.$"),
        ({"reward": ["kanarienvogel"]}, r"^feedback, reward: must be an array of numbers\.$"),
    ],
)
def test_feedback_that_is_incomplete_is_refused(changes, message):
    with pytest.raises(DataError, match=message):
        from_obp({"context": [[1.0]], "action": [0], "reward": [1], **changes})


def test_questions_cannot_go_to_obp():
    with pytest.raises(DataError, match=r"^data: holds no logged actions\."):
        to_obp(Cohort(seed=0).make().without_log())
