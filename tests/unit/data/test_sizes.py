"""Sizes that may be shown, and actions without a loss."""

import numpy as np
import pytest
from small_worlds import CLINIC, ward
from strategies import read_small as read
from strategies import small_table as table

from etips.data import load_trajectories
from etips.data.schema import Schema
from etips.data.sizes import MissingLosses, count_missing_losses, show_sizes
from etips.data.trajectories import Trajectories
from etips.disclosure import are_few
from etips.errors import DataError, SettingError


def test_sizes_that_do_not_tell_of_a_few_are_told():
    data = CLINIC.log(200, seed=0)
    sizes = show_sizes(data)
    assert (sizes.n_decisions, sizes.n_stays) == (data.n_decisions, data.n_stays)


def test_p2_no_two_of_them_differ_by_few_nor_from_what_is_known():
    rng = np.random.default_rng(0)
    for seed in range(30):
        data = ward(n_stays=int(rng.integers(12, 80)), lag=int(rng.integers(0, 2)), seed=seed)
        known = rng.integers(11, 200, 3).tolist()
        counts = show_sizes(data, known=known).counts
        assert not any(are_few(count) for count in counts)
        both = [*counts, *known]
        assert not any(are_few(abs(one - other)) for one in counts for other in both)


NAN = float("nan")


def stays(action, loss, **more):
    n = len(action)
    schema = Schema(sequence=("x",), n_actions=3, lag=0)
    return Trajectories(
        sequence=np.zeros((n, 1), np.float32),
        offsets=np.arange(n + 1),
        schema=schema,
        action=np.array(action),
        loss=np.array(loss, float),
        **more,
    )


def test_by_default_an_action_without_a_loss_is_no_decision_and_weighted_it_is_one():
    columns = {"a": [0, None, 2, 0, 1, 2], "l": [0.1, None, 0.3, 0.4, None, 0.6]}
    dropped = read(table(**columns), lag=0)
    weighted = read(table(**columns), lag=0, missing_loss="weight")
    assert (dropped.n_decisions, weighted.n_decisions) == (4, 5)
    assert np.isnan(weighted.logged_loss).tolist() == [False, False, False, True, False]
    with pytest.raises(SettingError, match=r'^missing_loss: must be "drop" or "weight"\.$'):
        read(table(**columns), lag=0, missing_loss="forget")


def test_a_weighted_decision_needs_its_known_propensity():
    columns = {
        "a": [0, None, 2, 0, 1, 2],
        "l": [0.1, None, 0.3, 0.4, None, 0.6],
        "p": [0.5, None, 0.5, 0.5, None, 0.5],
    }
    assert read(table(**columns), lag=0, propensity="p").n_decisions == 4
    with pytest.raises(DataError, match=r"must be in \(0, 1\] at every decision"):
        read(table(**columns), lag=0, propensity="p", missing_loss="weight")


def test_what_becomes_of_missing_losses_and_the_control_travel_with_the_stays(tmp_path):
    columns = {
        "a": [0, 1, 2, 0, 1, 2],
        "l": [0.1, None, 0.3, 0.4, None, 0.6],
        "before": [1.0, None, 3.0, 4.0, 5.0, 6.0],
    }
    data = read(table(**columns), lag=0, missing_loss="weight", negative_control="before")
    assert "before" not in data.schema.sequence
    data.save(tmp_path / "stays")
    again = load_trajectories(tmp_path / "stays")
    for own in (data, again, data.subset([1, 0]).subset([1, 0])):
        assert own.missing_loss == "weight"
        np.testing.assert_array_equal(own.negative_control, [1, NAN, 3, 4, 5, 6])
    assert again.schema.roles.negative_control == "before"
    assert data.without_log().negative_control is None
    with pytest.raises(DataError, match=r"must be finite, or empty where it is not known"):
        read(table(**{**columns, "before": [1.0, np.inf, 3.0, 4, 5, 6]}), negative_control="before")


def test_files_that_know_no_negative_control_are_read():
    document = Schema(sequence=("negative_control", "x"), n_actions=2, roles=_other()).to_json()
    del document["roles"]["negative_control"]
    assert Schema.from_json(document).roles.negative_control == "negative_control_"


def _other():
    roles = type(Schema(sequence=(), n_actions=2).roles)
    return roles(negative_control="other")


def test_missing_losses_are_counted_by_action_and_told_in_one_line():
    action = [0] * 200 + [1] * 100 + [2] * 100
    loss = [0.0] * 180 + [NAN] * 20 + [1.0] * 50 + [NAN] * 50 + [0.0] * 100
    found = count_missing_losses(stays(action, loss))
    assert found.missing.tolist() == [20, 50, 0]
    assert found.taken.tolist() == [200, 100, 100]
    assert found.tell() == (
        "loss: 70 of 400 actions have none; they are left out, which is right if chance alone "
        "decides who is missing. By action 1: 50 (50%), 0: 20 (10%)."
    )
    weighted = count_missing_losses(stays(action, loss, missing_loss="weight"))
    assert "speak for them" in weighted.tell()


def test_few_missing_losses_are_not_counted_aloud():
    action = [0] * 200 + [1] * 100
    few = count_missing_losses(stays(action, [0.0] * 297 + [NAN] * 3))
    assert few.total is None
    assert "3" not in few.tell()
    mixed = MissingLosses(np.array([5, 40, 40]), np.array([100, 100, 100]), "drop")
    assert mixed.total == (85, 300)
    assert not mixed.shown[0]
    assert mixed.shown.sum() < 3
    assert " 5 " not in mixed.tell()


def test_complete_data_questions_and_losses_still_to_be_computed_have_nothing_to_tell():
    whole = stays([0, 1, 2], [0, 0, 0])
    assert count_missing_losses(whole) is None
    assert count_missing_losses(whole.without_log()) is None
    assert count_missing_losses(stays([0, 1, 2], [NAN, NAN, NAN])) is None
