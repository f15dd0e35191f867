"""What the tasks of a study found, put together: paths, words, and one policy of all folds."""

import math

import pytest
from hand_made_findings import findings

from etips.learn.fitting.candidates import Candidate
from etips.studies.findings import _draws


def test_the_path_of_a_method_is_that_of_each_fold():
    assert [len(path) for path in findings().path("etips")] == [3, 3]
    assert findings().path("random") == [(), ()]


def test_the_mean_path_averages_folds_and_takes_what_most_chose():
    path = findings().mean_path("etips")
    assert [(c.translation, c.action) for c in path[:2]] == [(0.3, None), (0.7, None)]
    assert math.isnan(path[2].translation)
    assert [c.chosen for c in path] == [False, True, False]
    assert [c.risk for c in path] == pytest.approx([0.5, 0.4, 0.6])
    assert all(isinstance(c, Candidate) for c in path)


def test_what_candidates_were_compared_on_is_said_in_words():
    assert findings().judged_on == "on what their networks did not learn from"
    assert findings().expected_factor == "The matching factor is 1 in expectation."


def test_only_a_method_without_preference_draws():
    assert [name for name in ("random", "etips", "logging") if _draws(name)] == ["random"]
