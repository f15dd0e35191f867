"""Which steps are decisions, what each may see, and the losses."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_cohorts import Cohort, cohorts

from etips.data import Schema, Stay, Trajectories, final_value, sofa_change
from etips.errors import DataError

NAN = float("nan")


def stays(action, loss, offsets, lag, eligible=None):
    n = offsets[-1]
    return Trajectories(
        sequence=np.arange(n, dtype=np.float32)[:, None],
        offsets=np.array(offsets),
        schema=Schema(sequence=("x",), n_actions=3, lag=lag),
        action=None if action is None else np.array(action),
        loss=None if loss is None else np.array(loss, float),
        eligible=None if eligible is None else np.array(eligible),
    )


def pairs(data):
    return list(zip(*(part.tolist() for part in data.decisions()), strict=True))


def plain_decisions(data):
    """The rule of docs/cohort/rules.md section 18.2, step by step."""
    found = []
    for stay in range(data.n_stays):
        start, stop = int(data.offsets[stay]), int(data.offsets[stay + 1])
        steps = range(stop - start) if data.logged or data.lag == 0 else range(stop - start + 1)
        for step in steps:
            if step < data.lag:
                continue
            row = start + step
            if data.logged and (data.action[row] == -1 or np.isnan(data.loss[row])):
                continue
            if data.eligible is not None and not data.eligible[row]:
                continue
            found.append((stay, step))
    return found


def test_with_lag_one_the_first_step_has_no_history_and_is_no_decision():
    data = stays([0, 1, 2, 0, 1], [0, 0, 0, 0, 0], [0, 3, 5], lag=1)
    assert pairs(data) == [(0, 1), (0, 2), (1, 1)]
    assert data.decision_rows.tolist() == [1, 2, 4]


def test_with_lag_zero_every_known_step_is_a_decision():
    data = stays([0, 1, 2, 0, 1], [0, 0, 0, 0, 0], [0, 3, 5], lag=0)
    assert pairs(data) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]


def test_a_step_without_action_or_without_loss_is_no_decision():
    data = stays([0, -1, 2, 0, 1], [0, 0, NAN, 0, 0], [0, 3, 5], lag=0)
    assert pairs(data) == [(0, 0), (1, 0), (1, 1)]


def test_a_gap_is_expressed_by_the_mask_and_leaves_the_history_whole():
    data = stays([0, 1, 2, 0], [0, 0, 0, 0], [0, 4], lag=1, eligible=[True, True, False, True])
    assert pairs(data) == [(0, 1), (0, 3)]
    assert data.histories().sequence[1, :, 0].tolist() == [0, 1, 2]


def test_without_a_log_and_lag_zero_every_step_is_a_question():
    data = stays(None, None, [0, 2, 3], lag=0)
    assert pairs(data) == [(0, 0), (0, 1), (1, 0)]


def test_without_a_log_and_lag_one_the_step_after_the_last_is_a_question_too():
    data = stays(None, None, [0, 2, 3], lag=1)
    assert pairs(data) == [(0, 1), (0, 2), (1, 1)]
    assert data.histories().lengths.tolist() == [1, 2, 1]
    assert data.histories().sequence[:, :, 0].tolist() == [[0, 0], [0, 1], [2, 0]]


@given(cohorts, st.booleans(), st.booleans())
def test_decisions_agree_with_the_rule_written_as_a_loop(cohort, logged, masked):
    data = replace(cohort, eligible=masked).make()
    data = data if logged else data.without_log()
    assert pairs(data) == plain_decisions(data)


@given(cohorts, st.booleans())
def test_histories_agree_with_a_plain_slow_copy(cohort, logged):
    data = cohort.make()
    data = data if logged else data.without_log()
    found = data.histories()
    assert len(found.lengths) == data.n_decisions
    for i, (stay, step) in enumerate(plain_decisions(data)):
        start = data.offsets[stay]
        seen = data.sequence[start : start + step + 1 - data.lag]
        assert found.lengths[i] == len(seen) >= 1
        assert np.array_equal(found.sequence[i, : len(seen)], seen)
        assert not found.sequence[i, len(seen) :].any()
        assert np.array_equal(found.static[i], data.static[stay])


def test_some_histories_are_those_rows_of_all_of_them():
    data = Cohort(seed=3, n_stays=8, gaps=0).make()
    every = data.histories()
    for chosen in (slice(2, 5), np.array([6, 1, 3])):
        some = data.histories(chosen)
        longest = some.sequence.shape[1]
        assert np.array_equal(some.lengths, every.lengths[chosen])
        assert np.array_equal(some.sequence, every.sequence[chosen][:, :longest])
        assert np.array_equal(some.static, every.static[chosen])


def test_no_decision_gives_an_empty_batch_of_histories():
    data = stays([-1, -1], [NAN, NAN], [0, 2], lag=0)
    assert data.histories().sequence.shape == (0, 0, 1)
    assert data.n_decisions == 0


def test_the_order_of_decisions_is_by_stay_then_by_step_and_does_not_change():
    data = Cohort(seed=1, n_stays=20).make()
    stay, step = data.decisions()
    assert np.lexsort((step, stay)).tolist() == list(range(data.n_decisions))
    assert all(np.array_equal(a, b) for a, b in zip(data.decisions(), (stay, step), strict=True))
    with pytest.raises(ValueError, match="read-only"):
        stay[0] = 9
    with pytest.raises(ValueError, match="read-only"):
        data.decision_rows[0] = 9


@pytest.mark.parametrize("lag", [0, 1])
def test_d2_a_history_never_changes_with_what_happens_at_or_after_its_decision(lag):
    """D2: 1000 random stays; alter every value from a decision's time on, byte for byte the same.

    With lag=0 a decision's own step is part of its history, so only later steps are altered.
    """
    rng = np.random.default_rng(lag)
    n_checked = 0
    for seed in range(50):
        data = Cohort(seed=seed, n_stays=20, longest=8, lag=lag, gaps=0.3).make()
        stay, step = data.decisions()
        for number in rng.choice(data.n_decisions, 20, replace=data.n_decisions < 20):
            future = np.zeros(data.n_steps, bool)
            start, stop = data.offsets[stay[number]], data.offsets[stay[number] + 1]
            future[start + step[number] + (1 - lag) : stop] = True
            other = replace(
                data,
                sequence=np.where(future[:, None], np.float32(999), data.sequence),
                loss=np.where(future & (data.action >= 0), 77.0, data.loss),
                action=np.where(future & (data.action >= 0), 1, data.action),
            )
            position = pairs(other).index((stay[number], step[number]))
            for before, after in zip(
                data.histories(np.array([number])),
                other.histories(np.array([position])),
                strict=True,
            ):
                assert before.tobytes() == after.tobytes()
            n_checked += 1
    assert n_checked == 1000


# bloc, SOFA, loss by hand: every branch of docs/cohort/rules.md section 18.1, two gaps and the end.
SOFA_TABLE = [
    (1, 7, 0),  # falls to 6
    (2, 6, 1),  # stays, above 5
    (3, 6, 0),  # falls to 5
    (4, 5, 0),  # stays at 5
    (5, 5, 1),  # rises to 6
    (6, 6, NAN),  # bloc 7 is missing, whatever SOFA does
    (8, 0, 0),  # stays at 0
    (9, 0, 1),  # rises to 1
    (10, 1, NAN),  # bloc 11 and 12 are missing, though SOFA falls
    (13, 0, NAN),  # SOFA of bloc 14 is not known
    (14, NAN, NAN),  # SOFA is not known
    (15, 24, 1),  # stays at the top
    (16, 24, NAN),  # the end
]


def test_sofa_change_agrees_with_a_hand_worked_chart():
    bloc, sofa, expected = (np.array(column, float) for column in zip(*SOFA_TABLE, strict=True))
    chart = np.stack([np.zeros(len(sofa)), sofa], axis=1).astype(np.float32)
    loss = sofa_change(Stay(bloc.astype(np.int64), chart, ("HR", "SOFA")))
    assert np.array_equal(loss, expected, equal_nan=True)


def test_sofa_change_of_a_single_step_is_not_known():
    loss = sofa_change(Stay(np.array([4]), np.array([[3]], np.float32), ("SOFA",)))
    assert np.array_equal(loss, [NAN], equal_nan=True)


def test_sofa_change_makes_no_decision_of_a_gap():
    data = Trajectories(
        sequence=np.array([[7], [6], [6], [3], [3], [4]], np.float32),
        offsets=np.array([0, 4, 6]),
        schema=Schema(sequence=("SOFA",), n_actions=2, lag=1),
        action=np.zeros(6, int),
        loss=np.zeros(6),
        step=np.array([1, 2, 4, 5, 1, 2]),
    ).with_loss(sofa_change)
    assert np.array_equal(data.loss, [0, NAN, 0, NAN, 1, NAN], equal_nan=True)
    assert pairs(data) == [(0, 2)]


def test_a_loss_that_needs_a_feature_which_is_not_there_is_refused_by_name():
    with pytest.raises(
        DataError, match=r"^loss: needs the sequential feature 'SOFA', which is not"
    ):
        Cohort(seed=0).make().with_loss(sofa_change)


def test_final_value_charges_every_step_with_the_last_one():
    stay = Stay(np.arange(3), np.array([[0], [0], [1]], np.float32), ("death",))
    assert final_value("death")(stay).tolist() == [1, 1, 1]


def test_a_stay_shows_no_value_when_printed():
    stay = Stay(np.arange(1), np.array([[1234.5]], np.float32), ("x",))
    assert "1234" not in repr(stay)
