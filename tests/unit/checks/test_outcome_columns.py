"""Outcomes in words, and what is asked of somebody who knows the data."""

import pytest

from etips.checks.column_facts import ColumnFacts
from etips.checks.outcome_columns import ask, is_coded, is_earlier, says_harm, stacked, wordy
from etips.data.tables.columns import TableColumns


def text(name, *levels, n=200):
    return ColumnFacts(name, 0, "text", n, n_distinct=len(levels), levels=levels)


def number(name, n_distinct, low=0.0, high=9.0):
    return ColumnFacts(name, 0, "number", 200, 0, n_distinct, whole=True, low=low, high=high)


@pytest.mark.parametrize(
    ("levels", "says"),
    [
        (("Alive", "Died"), True),
        (("Alive", "Died", "n/a"), True),
        (("A", "B"), False),
        (("current", "former", "never"), False),
        (("no", "yes"), False),  # that is for the column's name to say
        (("Died",), False),
    ],
)
def test_words_say_who_came_to_harm_or_not(levels, says):
    assert says_harm(text("status", *levels)) is says


def test_columns_of_a_few_words_are_told_from_others():
    assert wordy([text("a", "x", "y"), text("b", "x"), number("c", 5)]) == [text("a", "x", "y")]


def test_codes_are_told_from_scores_by_their_name():
    assert is_coded(number("OCCODE", 4))
    assert is_coded(number("discharge_status_concept_id", 2, high=99.0))
    assert not is_coded(number("SOFA", 12))
    assert not is_coded(number("died_status", 2, high=1.0))


def test_what_was_there_before_the_treatment_is_known_by_its_name():
    assert is_earlier("prior_medication")
    assert not is_earlier("medication")


def test_a_guessed_outcome_of_either_meaning_is_asked_about():
    facts = [number("outcome", 2, high=1.0)]
    said = TableColumns(loss="outcome")
    assert ask(facts, said, guessed=["loss"], one_row=True) == (
        "outcome: is 1 the harm? If it is what is hoped for: --reward outcome",
    )
    assert ask(facts, said, guessed=[], one_row=True) == ()
    assert ask([number("died", 2, high=1.0)], said, guessed=["loss"], one_row=True) == ()


def test_words_that_are_not_clear_are_asked_about_unless_few_rows_have_them():
    said = TableColumns(loss="end")
    told = ask([text("end", "A", "B")], said, guessed=[], one_row=False)
    assert told == ("end: which of A, B are the harm? Name them in --bad",)
    assert ask([text("end", "A", "B", n=20)], said, guessed=[], one_row=False) == ()
    named = TableColumns(loss="end", bad=("B",))
    assert ask([text("end", "A", "B")], named, guessed=[], one_row=False) == ()


def test_measurements_side_by_side_are_asked_about():
    facts = [number(f"sofa_{k}", 9) for k in range(1, 5)]
    asked = ask(facts, TableColumns(), guessed=[], one_row=True)
    assert len(asked) == 1
    assert asked[0].startswith("sofa_1 to sofa_4 look like one thing measured 4 times: were all")
    assert ask(facts, TableColumns(), guessed=[], one_row=False) == ()
    assert ask(facts[:2], TableColumns(), guessed=[], one_row=True) == ()


def test_a_row_a_measurement_is_told_with_the_line_that_mends_it():
    facts = [text("variable", "map", "hr"), number("value", 40)]
    (told,) = stacked(facts)
    assert "columns='variable', values='value'" in told
    assert stacked([text("variable", "map"), number("age", 40)]) == []
