"""Outcomes as losses: numbers, rewards, words, codes of harm."""

import numpy as np
import pyarrow as pa
import pytest

from etips.data.intake.outcomes import fate_of, read_outcome, read_words
from etips.data.recipe import Outcome
from etips.errors import DataError, SettingError
from etips.notes import collecting_notes


def read(values, *, reward=False, bad=(), known=None):
    column = pa.chunked_array([values])
    loss, outcome = read_outcome("t, column y", column, reward=reward, bad=bad, known=known)
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
    told = Outcome("reward", "one_minus", ("alive",), ("dead",))
    assert read(["alive", "dead"], reward=True) == ([0.0, 1.0], told)
    assert read(["alive", "dead"])[1] == Outcome("loss", "as_it_is", ("dead",), ("alive",))


def test_a_missing_word_is_a_missing_loss():
    assert np.isnan(read(["yes", None, ""])[0][1:]).all()


@pytest.mark.parametrize("words", [["good", "so so"], ["yes", "dead"], ["dead", "alive", "lost"]])
def test_words_that_are_not_plain_are_refused_with_the_option(words):
    rule = r"^t, column y: holds words of which it is not clear which are the harm\. .* --bad WORD"
    with pytest.raises(DataError, match=rule):
        read(words)


def test_codes_that_are_the_harm_are_named():
    loss, outcome = read([1, 2, 3, 4, None, 1], bad=("1", "2.0"))
    assert loss[:4] == [1, 1, 0, 0]
    assert np.isnan(loss[4])
    assert outcome == Outcome("loss", "as_it_is", ("1", "2"), ("3", "4"))
    assert read(["dead", "lost", "n/a"], bad=("Dead",))[0][:2] == [1, 0]
    assert np.isnan(read(["dead", "lost", "n/a"], bad=("Dead",))[0][2])


def test_a_harm_that_does_not_occur_is_refused():
    with pytest.raises(SettingError, match=r"^bad 5: is no value of t, column y\. Spell it"):
        read([1, 2], bad=("1", "5"))


def test_another_table_is_read_by_the_same_codes_and_what_is_new_is_not_known():
    known = read([1, 2, 3], bad=("1",))[1]
    with collecting_notes() as notes:
        loss, _ = read([3, 1, 9], known=known)
    assert loss[:2] == [0, 1]
    assert np.isnan(loss[2])
    assert notes == [
        "t, column y: under 11 rows hold a value not seen before: their loss is not known"
    ]
    words = read(["A", "B"], bad=("B",))[1]
    assert read(["b", "a"], known=words)[0] == [1, 0]
    assert read([0, 1], known=read(["dead", "alive"])[1])[0] == [0, 1]  # written otherwise now


def test_what_counts_as_harm_is_told_without_rare_values():
    with collecting_notes() as notes:
        read([*[1] * 20, *[2] * 20, 3], bad=("1", "3"))
    assert notes == ["the loss is 1 where y is 1 or a value that is not shown, and 0 where it is 2"]


def test_numbers_with_a_word_among_them_are_refused_by_row():
    with pytest.raises(
        DataError, match=r"must be numeric, is text; 1 of 3 rows fail, first at row 2"
    ):
        read(["0.5", "2", "broken"])


@pytest.mark.parametrize(
    ("text", "fate"),
    [
        ("Died", "harm"),
        ("1 = verstorben", "harm"),
        ("Death in hospital", "harm"),
        ("discharged dead", "harm"),
        ("non-survivor", "harm"),
        ("not recovered", "harm"),
        ("Décédé", "harm"),
        ("unfavourable", "harm"),
        ("(0) Alive", "good"),
        ("No death", "good"),
        ("Discharged home", "good"),
        ("überlebt", "good"),
        ("favourable", "good"),
        ("Lost to follow-up", None),
        ("transferred alive", None),
        ("alive with relapse", None),
        ("death, no autopsy", None),
        ("not discharged", None),
        ("B", None),
        ("positive", None),
    ],
)
def test_a_label_says_harm_or_its_contrary_or_is_left_open(text, fate):
    assert fate_of(text) == fate


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        (["Alive", "Died"], [0, 1]),
        (["discharged", "expired"], [0, 1]),
        (["yes", "no"], [1, 0]),
        (["1 = ja", "0 = nein"], [1, 0]),
        (["Died", "ward"], [1, 0]),  # of two, what is no death is none
        (["Home", "SNF"], None),
        (["Alive", "ICU"], None),  # the other may be anything
        (["Died", "lost"], None),
        (["Died", "unknown"], None),
        (["A", "B"], None),
        (["yes", "dead"], None),
        ([], None),
    ],
)
def test_labels_are_read_together_or_not_at_all(labels, wanted):
    found = read_words(labels)
    assert (None if found is None else list(found.values())) == wanted


def test_of_a_reward_the_good_label_counts():
    assert read_words(["Alive", "Died"], reward=True) == {"Alive": 1.0, "Died": 0.0}
