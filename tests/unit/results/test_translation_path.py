"""The translation path of a policy, as results show it."""

import math

from etips.learn.fitting.candidates import Candidate
from etips.learn.learners.learner import Learner
from etips.results.translation_path import path_of, restore_path, summarize_path


class Chooser(Learner):
    def _learn(self, stays):
        yield from ()

    path_ = (
        Candidate(0.5, None, 0.4, 0.1, 1.0, 50.0, chosen=True),
        Candidate(math.nan, 2, math.inf, math.inf, 0.0, 0.0),
    )


def test_results_show_each_candidate_and_whether_its_risk_could_be_believed():
    first, second = summarize_path(Chooser.path_)
    assert (first.translation, first.sound) == (0.5, True)
    assert (second.translation, second.risk, second.sound) == (None, None, False)


def test_a_policy_without_candidates_has_an_empty_path():
    assert path_of(object()) == ()
    assert path_of(Chooser()) == Chooser.path_


def test_candidates_are_restored_from_what_results_show():
    path = (
        Candidate(0.5, None, 0.4, 0.1, 1.0, 50.0, chosen=True, epochs=7, in_race=False),
        Candidate(math.nan, 2, math.inf, 0.1, 0.0, 0.0),
    )
    first, second = restore_path(summarize_path(path))
    assert first == path[0]
    assert (second.action, second.std_error, second.chosen) == (2, 0.1, False)
    assert math.isnan(second.translation)
    assert math.isnan(second.risk)
