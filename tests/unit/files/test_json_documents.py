"""JSON documents: one spelling, no NaN, and what is no small object is refused by name."""

import math

import numpy as np
import pytest

from etips.errors import FileError
from etips.files.json_documents import canonical, finite, plain, read_document


def test_there_is_one_spelling_of_a_document():
    assert canonical({"b": 1, "a": "ä"}) == b'{\n "a": "\\u00e4",\n "b": 1\n}\n'
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical({"a": float("nan")})


def test_a_number_that_json_cannot_hold_is_none():
    assert [finite(value) for value in (1, np.int64(2), np.float32(0.5))] == [1.0, 2.0, 0.5]
    assert [finite(v) for v in (math.nan, math.inf, True, "3", None)] == [None] * 5


def test_what_json_has_no_word_for_is_written_out():
    odd = {1: (math.inf, 2.5, None), "b": [True, {"c": {3}}]}
    assert plain(odd) == {"1": ["inf", 2.5, None], "b": [True, {"c": "{3}"}]}
    canonical(plain(odd))


def test_a_small_document_is_read_and_one_that_is_not_there_is_none(tmp_path):
    assert read_document(tmp_path / "no.json") is None
    (tmp_path / "x.json").write_bytes(canonical({"a": 1}))
    assert read_document(tmp_path / "x.json") == {"a": 1}


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"[]", "must be an object"),
        (b"kanarienvogel", "is not valid JSON"),
        (b"[" * 100_000, "is not valid JSON"),
        (b" " * (2**20 + 1), "is too large for what it should hold"),
    ],
)
def test_anything_else_is_refused_by_name_and_without_its_content(tmp_path, content, rule):
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(FileError, match=rf"x\.json: {rule}\.$") as refusal:
        read_document(path)
    assert "kanarienvogel" not in str(refusal.value)
