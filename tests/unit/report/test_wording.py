"""Names, numbers and verdicts as a page shows them."""

import pytest

from etips.report.wording import badge, cell, clean, count, name, number, percent, signed, span


def test_names_are_one_line_without_marks_that_turn_text_around():
    assert clean("  two\nwords\tand\x00 \u202emore ") == "two words and more"
    assert clean("x" * 70) == "x" * 59 + "\u2026"
    assert str(name("a" * 400)).count("a") == 59 + 299


@pytest.mark.parametrize(
    ("value", "plain", "with_sign"),
    [(-0.0001, "0.000", "0.000"), (0.0001, "0.000", "0.000"), (-0.25, "\u22120.250", "\u22120.250"),
     (1.5, "1.500", "+1.500"), (None, "\u2013", "\u2013"), (True, "\u2013", "\u2013")],
)  # fmt: skip
def test_numbers_that_round_to_nothing_have_no_sign(value, plain, with_sign):
    assert number(value) == plain
    assert signed(value) == with_sign


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [
        (0.0, 0, "0\u00a0%"),
        (0.004, 0, "<1\u00a0%"),
        (0.0004, 1, "<0.1\u00a0%"),
        (0.5, 0, "50\u00a0%"),
    ],
)
def test_a_share_that_rounds_to_nothing_is_not_nothing(value, digits, shown):
    assert percent(value, digits) == shown


def test_what_is_hidden_or_missing_says_so():
    assert count(None) == "hidden"
    assert count(1234) == "1,234"
    assert span(None, 0.5) == "\u2013 to 0.500"
    assert "no verdict" in badge(None)
    assert "reliable" in badge("reliable")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.5, "0.5000"),
        (1234, "1,234"),
        (None, "\u2013"),
        ("-", "\u2013"),
        ("-0.1 ± 0.2", "\u22120.1 ± 0.2"),
    ],
)
def test_a_cell_of_a_studys_table_has_a_true_minus(value, shown):
    assert cell(value) == shown
