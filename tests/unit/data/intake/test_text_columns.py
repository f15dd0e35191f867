"""What a column of text holds."""

import numpy as np
import pyarrow as pa
import pytest

from etips.data.intake.text_columns import (
    is_textual,
    look_at,
    plain_text,
    text_flags,
    yes_no_levels,
)
from etips.data.tables.sources import Source


def column(values):
    return pa.chunked_array([pa.array(values, pa.string())])


def looked(*parts):
    tables = [pa.table({"x": pa.array(part, pa.string())}) for part in parts]
    n_rows = sum(table.num_rows for table in tables)
    return look_at(Source("t", {"x": pa.string()}, n_rows, lambda _: iter(tables)), "x")


def test_words_are_found_in_all_parts():
    look = looked(["low", None, " low "], ["high", ""])
    assert (look.n_rows, look.words) == (3, {"low", "high"})
    assert len(looked([str(i) for i in range(5000)]).words) == 1001


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["Yes", "no"], True),
        (["Y", "n", None], True),
        (["ja", "nein"], True),
        (["TRUE", "False"], True),
        (["T", "F"], True),
        (["Y"], True),
        (["F"], False),
        (["F", "M"], False),
        (["yes", "no", "unknown"], False),
        ([None], False),
    ],
)
def test_yes_and_no_are_known_in_a_few_tongues(words, answer):
    assert looked(words).is_yes_no is answer


def test_blank_cells_and_those_that_say_nan_are_missing():
    found = plain_text("x", column(["  a ", " ", "", "nan", "<NA>", "none", None]))
    assert found.to_pylist() == ["a", None, None, None, None, "none", None]


def test_yes_is_one_and_what_is_neither_is_counted():
    values, odd = text_flags("x", column(["Y", "no", None, "perhaps"]))
    assert np.array_equal(values, [1, 0, np.nan, np.nan], equal_nan=True)
    assert odd == 1
    assert yes_no_levels({"N", "Y"}) == ("N", "Y")
    assert yes_no_levels({"Ja"}) == ("no", "Ja")


def test_a_dictionary_is_no_plain_text():
    assert is_textual(pa.large_string())
    assert not is_textual(pa.dictionary(pa.int8(), pa.string()))
