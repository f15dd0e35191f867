"""Treatment so far as features."""

from dataclasses import replace

import numpy as np
import pytest
from small_worlds import ward

from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.learn.nuisance import treatment_so_far
from etips.learn.nuisance.treatment_so_far import with_treatment


def log(lag):
    return Trajectories(
        sequence=np.zeros((5, 1), np.float32),
        offsets=np.array([0, 3, 5]),
        schema=Schema(sequence=("x",), n_actions=2, lag=lag),
        action=np.array([1, 1, 0, 0, -1]),
        loss=np.zeros(5),
    )


def test_a_row_holds_what_was_given_before_its_own_decision():
    made = with_treatment(log(lag=0))
    assert made.sequence[:, 1:3].tolist() == [[0, 0], [0, 1], [0, 1.5], [0, 0], [1, 0]]
    assert made.sequence[:, 4] == pytest.approx([0, 1, 1.9, 0, 0])
    assert made.sequence[:, 5].tolist() == [0, 1, 2, 0, 1]


def test_with_a_lag_a_row_answers_the_next_step_and_knows_its_own_action():
    made = with_treatment(log(lag=1))
    assert made.sequence[:, 1:3].tolist() == [[0, 1], [0, 1.5], [1, 0.75], [1, 0], [0.5, 0]]


def test_everything_else_is_as_it_was_and_names_are_distinct():
    data = ward()
    clash = replace(data.schema, sequence=("steps so far", *data.schema.sequence[1:]))
    made = with_treatment(replace(data, schema=clash))
    assert len(set(made.schema.sequence)) == made.sequence.shape[1]
    assert made.sequence[:, :4] == pytest.approx(data.sequence)
    assert made.logged_loss == pytest.approx(data.logged_loss)


def test_wide_data_is_left_alone(monkeypatch):
    monkeypatch.setattr(treatment_so_far, "WIDEST", 5)
    data = ward()
    assert with_treatment(data) is data
