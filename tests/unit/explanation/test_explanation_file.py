"""Where an explanation is written."""

import json
import math
from pathlib import Path

import pytest

from etips.errors import FileError
from etips.explanation.explanation_file import finite, require_ending, write_explanation
from etips.explanation.explanation_parts import ExplanationParts


def test_an_ending_that_says_nothing_is_refused(tmp_path):
    with pytest.raises(FileError, match=r"must end in \.html, \.json or \.png"):
        require_ending(Path("why.txt"))
    with pytest.raises(FileError):
        write_explanation(ExplanationParts(), tmp_path / "why")
    assert not list(tmp_path.iterdir())


def test_numbers_that_json_lacks_are_null(tmp_path):
    assert finite({"a": [math.inf, 1.0, (math.nan,)]}) == {"a": [None, 1.0, [None]]}
    place = write_explanation(ExplanationParts(), tmp_path / "why.json")
    assert json.loads(place.read_bytes())["stay"] is None
