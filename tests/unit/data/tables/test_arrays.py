"""Arrays and bandit feedback as stays."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from random_cohorts import Cohort, cohorts
from scipy import sparse
from strategies import fingerprint, refusal_text

import etips
from etips.data import from_arrays, from_obp, load_trajectories, obp_propensities, to_obp
from etips.errors import DataError, SettingError

NAN = float("nan")


def test_a_flat_array_is_one_decision_a_row_that_sees_its_own_features():
    x = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    data = from_arrays(x, [0, 1, 1], [0.5, 0.25, 1], static=[[7], [8], [9]], groups=["a", "b", "a"])
    assert (data.n_stays, data.n_steps, data.n_decisions, data.n_actions) == (3, 3, 3, 2)
    assert data.histories().sequence.tolist() == x[:, None].tolist()
    assert data.logged_action.tolist() == [0, 1, 1]
    assert data.logged_loss.tolist() == [0.5, 0.25, 1]
    assert data.static.tolist() == [[7], [8], [9]]
    assert data.group.tolist() == ["a", "b", "a"]
    assert data.schema.sequence == ("x0", "x1")
    assert data.schema.static == ("s0",)


@given(cohorts)
def test_padded_arrays_say_what_the_stays_say(cohort):
    """Pad by a plain loop, with rubbish where there is no step; nothing of it may be read."""
    data = cohort.make()
    lengths = np.diff(data.offsets)
    shape = (data.n_stays, lengths.max())
    features = np.full((*shape, data.sequence.shape[1]), np.nan)
    action, loss = np.full(shape, 99.0), np.full(shape, np.inf)
    propensity = np.full(shape, -7.0)
    for stay, n in enumerate(lengths):
        rows = slice(data.offsets[stay], data.offsets[stay + 1])
        features[stay, :n] = data.sequence[rows]
        action[stay, :n], loss[stay, :n] = data.action[rows], data.loss[rows]
        if data.propensity is not None:
            propensity[stay, :n] = data.propensity[rows]
    found = from_arrays(
        features,
        action,
        loss,
        static=data.static,
        lengths=lengths,
        propensity=None if data.propensity is None else propensity,
        groups=data.group,
        n_actions=data.n_actions,
        lag=data.lag,
    )
    assert found.histories().sequence.tobytes() == data.histories().sequence.tobytes()
    for name in ("offsets", "sequence", "action", "loss", "static"):
        assert getattr(found, name).tobytes() == getattr(data, name).tobytes(), name
    if data.propensity is not None:
        assert np.array_equal(found.logged_propensity, data.logged_propensity)


def test_one_action_a_stay_belongs_to_its_last_real_step():
    data = from_arrays(np.zeros((2, 3, 1)), [1, 0], [1, 0], lengths=[2, 3], propensity=[0.5, 1])
    assert list(zip(*map(list, data.decisions()), strict=True)) == [(0, 1), (1, 2)]
    assert data.action.tolist() == [-1, 1, -1, -1, 0]
    assert data.logged_propensity.tolist() == [0.5, 1]


def test_without_lengths_every_step_is_real():
    data = from_arrays(np.zeros((2, 3, 1)), [[0, -1, 1], [NAN, 0, 1]], np.zeros((2, 3)))
    assert data.n_steps == 6
    assert data.action.tolist() == [0, -1, 1, -1, 0, 1]


def test_without_action_the_rows_are_questions():
    data = from_arrays(np.zeros((2, 1)), n_actions=3)
    assert not data.logged
    assert (data.n_decisions, data.n_actions) == (2, 3)


X = np.zeros((4, 2))
BAD = {
    "features of one dimension": ({"features": [1, 2]}, r"^features: must have shape \(n, d\) or"),
    "no row": ({"features": np.zeros((0, 2))}, r"^features: must have shape \(n, d\)"),
    "ragged features": ({"features": [[1], [1, 2]]}, r"^features: must be an array of numbers\.$"),
    "complex": ({"features": [[1 + 2j]]}, r"^features: must be real\. Complex data not"),
    "sparse": ({"features": sparse.csr_array(np.eye(3))}, r"^features: must be dense\. Sparse"),
    "text": ({"features": [["kanarienvogel"]]}, r"^features: must be an array of numbers\.$"),
    "NaN": (
        {"features": np.where(np.arange(8).reshape(4, 2) == 5, NAN, X)},
        r"^sequence, feature x1: must be finite; 1 of 4 rows fail, first at row 2\.$",
    ),
    "beyond float32": (
        {"features": X + 1e308},
        r"^sequence, feature x0: must be finite; 4 of 4 rows fail, first at row 0\.$",
    ),
    "static beyond float32": (
        {"static": [[1], [1], [1e308], [1]]},
        r"^static, feature s0: must be finite; 1 of 4 rows fail, first at row 2\.$",
    ),
    "static too short": ({"static": [[1]]}, r"^static: must have shape \(4, s\)\.$"),
    "action not whole": (
        {"action": [0, 0.5, 1, 1]},
        r"^action: must be whole, 0\.\.65535, or -1 where there is none; "
        r"1 of 4 rows fail, first at row 1\.$",
    ),
    "action below": ({"action": [0, 0, -2, 1]}, r"^action: must be whole.* first at row 2\.$"),
    "action infinite": ({"action": [0, 0, 0, np.inf]}, r"^action: must be whole.* at row 3\.$"),
    "action huge": ({"action": [0, 0, 0, 1e308]}, r"^action: must be whole.* first at row 3\.$"),
    "action beyond": (
        {"action": [0, 0, 0, 2], "n_actions": 2},
        r"^action: must be whole, 0\.\.1, or -1 where there is none; 1 of 4 rows fail",
    ),
    "action of another shape": (
        {"action": [0, 1]},
        r"^action: must have shape \(4,\) or \(4, 1\), has \(2,\)\.$",
    ),
    "loss NaN": (
        {"loss": [0, NAN, 0, NAN]},
        r"^loss: must be finite; 2 of 4 rows fail, first at row 1\.$",
    ),
    "loss infinite": ({"loss": [0, 0, -np.inf, 0]}, r"^loss: must be finite; 1 of 4 .* row 2\.$"),
    "action alone": ({"loss": None}, r"^action, loss: must be given together or not at all\.$"),
    "propensity alone": (
        {"action": None, "loss": None, "propensity": [1] * 4},
        r"^propensity: needs action and loss\.$",
    ),
    "propensity zero": (
        {"propensity": [1, 1, 0, 1]},
        r"^propensity: must be in \(0, 1\] at every decision; 1 of 4 rows fail, first at row 2\.$",
    ),
    "lengths too long": (
        {"lengths": [1, 2, 1, 1]},
        r"^lengths: must be in 1\.\.1; 1 of 4 rows fail, first at row 1\.$",
    ),
    "lengths too few": ({"lengths": [1]}, r"^lengths: must be one whole number a row of the feat"),
    "lengths not whole": ({"lengths": [1.0] * 4}, r"^lengths: must be one whole number a row"),
    "no decision": (
        {"action": [-1] * 4},
        r"^action: must hold at least one decision\. See lag\.$",
    ),
    "no time and lag 1": ({"lag": 1}, r"^action: must hold at least one decision\. See lag\.$"),
    "groups too few": ({"groups": [1]}, r"^group: must have shape \(4,\), has \(1,\)\.$"),
}


@pytest.mark.parametrize("case", BAD)
def test_arrays_that_cannot_be_are_refused_by_row_and_without_a_value(case):
    changes, message = BAD[case]
    given_ = {"features": X, "action": [0, 1, 1, 0], "loss": np.zeros(4), **changes}
    with pytest.raises(DataError, match=message) as caught:
        from_arrays(**given_)
    assert "kanarienvogel" not in refusal_text(caught.value)


def test_a_refused_step_is_counted_by_its_row_of_the_padded_array():
    action = [[0, 0, 0], [0, 0, 0], [0, 7.5, 0]]
    with pytest.raises(DataError, match=r"1 of 7 rows fail, first at row 2\.$"):
        from_arrays(np.zeros((3, 3, 1)), action, np.zeros((3, 3)), lengths=[2, 3, 2])


def test_n_actions_of_none_are_refused():
    with pytest.raises(SettingError, match=r"^n_actions: must be in 1\.\.65536\.$"):
        from_arrays(X, n_actions=0)


def test_a_table_of_propensities_gives_that_of_the_logged_action():
    table = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
    data = from_arrays(np.zeros((2, 1)), [2, 0], [0.0, 1.0], propensity=table)
    assert data.logged_propensity.tolist() == [0.5, 0.6]
    steps = np.stack([table, table[::-1], table], axis=1)  # (2, 3, 3)
    action = [[0, 1, -1], [2, -1, 0]]
    data = from_arrays(np.zeros((2, 3, 1)), action, np.zeros((2, 3)), propensity=steps, n_actions=3)
    assert data.logged_propensity.tolist() == [0.2, 0.3, 0.1, 0.6]


def test_a_table_that_is_none_is_refused():
    wrong = {"must sum to 1": [[0.5, 0.1], [0.5, 0.5]], "a column for every action": [[1.0], [1.0]]}
    for rule, table in wrong.items():
        with pytest.raises(DataError, match=rf"^propensity: must .*{rule.removeprefix('must ')}"):
            from_arrays(np.zeros((2, 1)), [1, 0], [0.0, 1.0], propensity=table)


def test_actions_without_a_loss_are_refused_unless_they_are_weighted_for():
    features, action, loss = np.zeros((3, 1)), [0, 1, 1], [0.0, np.nan, 1.0]
    with pytest.raises(DataError, match=r"^loss: must be finite; 1 of 3 rows fail"):
        from_arrays(features, action, loss)
    data = from_arrays(features, action, loss, missing_loss="weight")
    assert data.n_decisions == 3
    assert data.missing_loss == "weight"
    with pytest.raises(DataError, match=r"^loss: must be finite; 1 of 3 rows fail"):
        from_arrays(features, action, [0.0, np.inf, 1.0], missing_loss="weight")


ROWS = np.random.default_rng(0).normal(size=(6, 2))
LOSS = [0, 1, 0, 1, 0, 1]


@pytest.mark.parametrize(
    "action",
    [
        ["b", "a", "b ", "a", "c", "b"],
        np.array(["b", "a", "b", "a", "c", "b"]),
        pd.Series(["b", "a", "b", "a", "c", "b"]),
        pd.Series(["b", "a", "b", "a", "c", "b"], dtype="category"),
    ],
)
def test_text_is_numbered_by_alphabet_and_names_the_actions(action):
    data = etips.from_arrays(ROWS, action=action, loss=LOSS)
    assert data.logged_action.tolist() == [1, 0, 1, 0, 2, 1]
    assert data.schema.actions == ("a", "b", "c")


def test_missing_text_is_no_action():
    data = etips.from_arrays(ROWS, action=["b", None, "", "a", np.nan, "b"], loss=LOSS)
    assert data.logged_action.tolist() == [1, 0, 1]


def test_steps_have_text_too():
    action = np.array([["a", None], ["b", "a"], ["b", None]], dtype=object)
    data = etips.from_arrays(ROWS.reshape(3, 2, 2), action=action, loss=np.zeros((3, 2)))
    assert data.action.tolist() == [0, -1, 1, 0, 1, -1]


@pytest.mark.parametrize("action", [[0, 1] * 3, ["0", "1"] * 3, [True, False] * 3])
def test_numbers_are_left_as_they_are(action):
    assert etips.from_arrays(ROWS, action, LOSS).schema.actions == ()


@pytest.mark.parametrize(
    ("action", "n_actions", "message"),
    [
        (["a", 1, 2.0], None, r"^action: must be text or numbers, not both; 2 of 3 rows"),
        ([f"a {k}" for k in range(201)], None, r"^action: must hold at most 200 different labels"),
        (["a", "b"], 3, r"^n_actions: must be the number of labels, which is 2"),
    ],
)
def test_text_among_numbers_and_too_many_labels_are_refused(action, n_actions, message):
    n = len(action)
    with pytest.raises((DataError, SettingError), match=message):
        etips.from_arrays(np.ones((n, 1)), np.array(action, object), [0.0] * n, n_actions=n_actions)


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
