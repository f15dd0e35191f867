"""The outcome as a loss."""

import numpy as np
import pyarrow as pa
import pytest

from etips.data.intake.outcome_reading import read_outcome
from etips.data.intake.recipe import Outcome
from etips.errors import DataError


def read(values, *, reward=False, known=None):
    column = pa.chunked_array([values])
    loss, outcome = read_outcome("t, column y", column, reward=reward, known=known)
    return loss.tolist(), outcome


def test_a_loss_stays_as_it_is():
    assert read([0.5, -2.0, 3.0]) == ([0.5, -2.0, 3.0], Outcome("loss", "as_it_is"))


def test_a_reward_that_is_a_share_is_taken_from_one_and_any_other_turned_round():
    assert read([0.0, 0.25, 1.0], reward=True) == ([1.0, 0.75, 0.0], Outcome("reward", "one_minus"))
    assert read([-1.0, 0.5], reward=True) == ([1.0, -0.5], Outcome("reward", "minus"))
    assert read([True, False], reward=True)[0] == [0.0, 1.0]


def test_the_rule_of_the_log_is_kept_though_this_table_would_give_another():
    known = Outcome("reward", "minus")
    assert read([0.0, 1.0], reward=True, known=known) == ([0.0, -1.0], known)


@pytest.mark.parametrize(
    ("words", "loss"),
    [
        (["yes", "No ", "YES"], [1, 0, 1]),
        (["Y", "N"], [1, 0]),
        (["dead", "alive"], [1, 0]),
        (["Survived", "died"], [0, 1]),
        (["true", "false"], [1, 0]),
        (["1", "0"], [1, 0]),
    ],
)
def test_plain_words_are_read(words, loss):
    assert read(words)[0] == loss
    assert read(pa.array(words).dictionary_encode())[0] == loss


def test_as_a_reward_the_good_word_counts_one():
    told = Outcome("reward", "one_minus", ("alive",))
    assert read(["alive", "dead"], reward=True) == ([0.0, 1.0], told)
    assert read(["alive", "dead"])[1] == Outcome("loss", "as_it_is", ("dead",))


def test_a_missing_word_is_a_missing_loss():
    assert np.isnan(read(["yes", None, ""])[0][1:]).all()


@pytest.mark.parametrize("words", [["good", "so so"], ["yes", "dead"], ["dead", "alive", "lost"]])
def test_words_that_are_not_plain_are_refused_with_the_remedy(words):
    with pytest.raises(DataError, match=r"^t, column y: must be a number, or words .* 1 and 0\.$"):
        read(words)


def test_numbers_with_a_word_among_them_are_refused_by_row():
    with pytest.raises(
        DataError, match=r"must be numeric, is text; 1 of 3 rows fail, first at row 2"
    ):
        read(["0.5", "2", "broken"])
