"""The translation path kept beside a policy."""

import math

import pytest

from etips.errors import FileError
from etips.learn.learners.selection import Candidate
from etips.results.translation_path import (
    PATH,
    RESULTS,
    keep_path,
    path_of,
    read_path,
    summarize_path,
)


class Learner:
    path_ = (
        Candidate(0.5, None, 0.4, 0.1, 1.0, 50.0, chosen=True),
        Candidate(math.nan, 2, math.inf, math.inf, 0.0, 0.0),
    )


def test_a_path_is_kept_and_read_back_without_what_json_lacks(tmp_path):
    (tmp_path / RESULTS).write_text("of an earlier policy")
    keep_path(tmp_path, Learner())
    first, second = read_path(tmp_path)
    assert first == Learner.path_[0]
    assert math.isnan(second.risk)
    assert (second.action, second.matching_factor, second.chosen) == (2, 0.0, False)
    assert not (tmp_path / RESULTS).exists()


def test_results_show_each_candidate_and_whether_its_risk_could_be_believed():
    first, second = summarize_path(Learner.path_)
    assert (first.translation, first.sound) == (0.5, True)
    assert (second.translation, second.risk, second.sound) == (None, None, False)


def test_a_policy_without_candidates_has_an_empty_path(tmp_path):
    assert path_of(object()) == ()
    assert read_path(tmp_path) == ()
    keep_path(tmp_path, object())
    assert list(read_path(tmp_path)) == []


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"path": 3}', '{"path": [1]}', "[" * 100_000])
def test_what_is_no_path_is_refused_in_one_line(content, tmp_path):
    (tmp_path / PATH).write_text(content)
    with pytest.raises(FileError, match=r"path\.json: "):
        read_path(tmp_path)
