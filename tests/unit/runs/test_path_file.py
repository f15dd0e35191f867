"""The translation path in a file."""

import math

import pytest

from etips.errors import FileError
from etips.learn.fitting.candidates import Candidate
from etips.runs.path_file import path_from_json, path_to_json, read_path, write_path

TRAINED = Candidate(0.3, None, 0.4, 0.01, 1.0, 90.0, chosen=True, epochs=5, in_race=False)
CONSTANT = Candidate(math.nan, 2, math.inf, math.inf, 0.0, 0.0)


def test_candidates_come_back_as_they_were(tmp_path):
    write_path(tmp_path / "path.json", [TRAINED, CONSTANT])
    first, second = read_path(tmp_path / "path.json")
    assert first == TRAINED
    assert (second.action, second.matching_factor, second.chosen) == (2, 0.0, False)
    assert math.isnan(second.translation)
    assert math.isnan(second.risk)  # JSON has no infinity


def test_json_has_null_where_there_is_no_number():
    (entry,) = path_to_json([CONSTANT])
    assert (entry["translation"], entry["risk"], entry["std_error"]) == (None, None, None)
    assert (entry["action"], entry["chosen"]) == (2, False)


def test_no_file_is_no_path(tmp_path):
    assert read_path(tmp_path / "path.json") == ()


@pytest.mark.parametrize("text", ["{}", '{"path": 3}', '{"path": [3]}'])
def test_another_document_is_refused(text, tmp_path):
    (tmp_path / "path.json").write_text(text)
    with pytest.raises(FileError, match=r"path\.json: is not a translation path\. Remove it\."):
        read_path(tmp_path / "path.json")


def test_what_a_forger_left_out_is_no_number():
    (candidate,) = path_from_json([{"risk": "low", "chosen": 1}])
    assert math.isnan(candidate.risk)
    assert candidate.action is None
    assert candidate.chosen is False
