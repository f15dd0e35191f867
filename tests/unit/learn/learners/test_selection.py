"""Which candidate becomes the policy, and what choosing comes to: candidates made up by hand."""

from dataclasses import replace

import numpy as np
import pytest

from etips.evaluation import snips
from etips.learn.fitting.candidates import Candidate, Weighing, blank, judge
from etips.learn.learners.policy_search import choose, risk_of_choosing


def candidate(risk, std_error=0.01, factor=1.0, size=100.0):
    return Candidate(0.5, risk, std_error, factor, size)


@pytest.mark.parametrize(
    ("candidates", "kept"),
    [
        ([candidate(0.4), candidate(0.3), candidate(0.5)], 1),
        ([candidate(0.30, 0.10), candidate(0.32, 0.01)], 1),  # what rests on more is preferred
        ([candidate(0.4), candidate(0.1, factor=0.5)], 0),
        ([candidate(0.4), candidate(0.1, size=10.0)], 0),
        ([candidate(0.1, np.nan), candidate(0.4)], 1),
        ([candidate(0.1, size=5.0), candidate(0.4, size=20.0), candidate(np.inf, size=0.0)], 1),
        ([candidate(0.3), candidate(0.3)], 0),
    ],
)
def test_the_least_cautious_risk_of_those_that_are_sound_wins(candidates, kept):
    assert choose(candidates, "held-out") == kept


def test_the_papers_rule_looks_at_nothing_but_snips():
    some = [candidate(0.4), candidate(0.1, 0.5, factor=0.01, size=1.0)]
    assert choose(some, "paper") == 1


def lottery(n=600, n_policies=8):
    """Policies that are alike but for luck, judged on a log in which nothing matters."""
    rng = np.random.default_rng(0)
    loss, chosen = rng.integers(0, 2, n).astype(float), rng.random((n_policies, n))
    totals = Weighing(np.full(n, 0.5), loss, np.arange(n)).totals(list(chosen))
    return judge([blank(place) for place in range(n_policies)], totals), loss, chosen


def test_the_corrected_risk_judges_each_fold_by_the_choice_of_the_others():
    judged, loss, chosen = lottery()
    fold = np.arange(len(loss)) % 3
    mixed = np.empty(len(loss))
    for number in range(3):
        inside = fold == number
        kept = choose(judged.on(~inside).candidates, "held-out")
        mixed[inside] = chosen[kept][inside]
    wanted = snips(loss, mixed / 0.5, np.arange(len(loss)))
    found = risk_of_choosing(judged, "held-out", fold)
    assert found == pytest.approx((wanted.risk, wanted.std_error))
    assert found[0] > judged.candidates[choose(judged.candidates, "held-out")].risk


def test_without_folds_nothing_is_corrected():
    judged, loss, _ = lottery()
    assert risk_of_choosing(judged, "held-out", np.zeros(len(loss), int)) is None


def test_one_candidate_alone_comes_to_its_own_risk():
    judged, loss, _ = lottery(n_policies=1)
    found = risk_of_choosing(judged, "paper", np.arange(len(loss)) % 4)
    (own,) = judged.candidates
    assert found == pytest.approx((own.risk, own.std_error))
    assert replace(own, risk=0.0).translation == 0
