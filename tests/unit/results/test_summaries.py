"""Evaluations made fit to be shown."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hospital_stays import hospital, make_exhibits

from etips.evaluation.diagnostics import PrognosisBalance, PrognosisBalances, diagnose
from etips.evaluation.log import view
from etips.learn.fitting.candidates import Candidate
from etips.learn.learners.learner import Learner
from etips.results.data_summary import summarize_data
from etips.results.evaluate import assess_policies
from etips.results.summaries import path_of, restore_path, summarize_path, summarize_prognosis


def test_the_data_are_told_in_counts_and_names(made):
    data, _, _ = made
    summary = summarize_data(data)
    assert (summary.n_stays, summary.n_decisions) == (240, 720)
    assert summary.n_events == data.logged_loss.sum()
    assert summary.mean_loss == pytest.approx(data.logged_loss.mean())
    assert summary.actions == data.schema.actions


def test_p2_a_mean_loss_that_would_count_a_few_events_is_hidden_and_the_gain_with_it(made):
    """P2: a gain and a risk give the mean loss, and that times the decisions is a count."""
    data, log, table = made
    loss = np.arange(data.n_steps) < 7
    for few in (loss, ~loss):
        rare = replace(data, loss=few.astype(float))
        assert (summarize_data(rare).n_events, summarize_data(rare).mean_loss) == (None, None)
        (method,) = assess_policies({"p": table}, log, rare)
        assert (method.gain.difference, method.prognosis) == (None, None)
        assert method.sensitivity.gamma_point is None
        assert {bound.gain_low for bound in method.sensitivity.bounds} == {None}
    (method,) = assess_policies({"p": table}, log, data)
    assert method.gain.difference is not None


def test_a_few_stays_are_not_counted():
    few = summarize_data(hospital(9, rare=0))
    assert (few.n_stays, few.n_decisions) == (None, 27)


def test_an_estimate_and_a_known_method_say_what_they_are(made):
    data, log, table = made
    both = {"mine": table, "p": table}
    own, other = assess_policies(both, log, data, learned_by={"mine": "direct"})
    assert (own.label, other.label) == ("DM", None)
    assert own.sentence.endswith(".")
    assert own.estimates[0].label == "SNIPS"
    assert own.estimates[0].sentence.endswith(".")


def test_p2_effective_sizes_of_a_few_are_hidden(made):
    """P2: with equal weights an effective size is a count of decisions."""
    data, log, table = made
    even = replace(log, propensity=np.full(log.n_decisions, 0.25), propensities=None)
    chosen = np.zeros_like(table)
    rows = np.arange(log.n_decisions)
    chosen[rows, np.where((rows >= 100) & (rows < 106), log.action, 3)] = 1
    found = make_exhibits(data, even, {"p": chosen}, headline="p")["actions"]["effective_n"]
    assert all(size is None or size == 0 or size >= 11 for size in found)
    (method,) = assess_policies({"p": chosen}, even, data)
    assert 0 < diagnose(even, view(even, chosen)).effective_sample_size < 11
    assert method.diagnostics.effective_sample_size is None


def balance(difference):
    return PrognosisBalance(difference, 0.01, difference / 0.01, 1.0)


def said(plain, gain, rest=None):
    balances = PrognosisBalances(
        balance(plain), balance(0.0), rest=None if rest is None else balance(rest)
    )
    return summarize_prognosis(assessed(balances, gain))


def assessed(balances, gain):
    return SimpleNamespace(
        diagnostics=SimpleNamespace(prognosis=balances), gain=SimpleNamespace(difference=gain)
    )


@pytest.mark.parametrize(
    ("plain", "gain", "rest", "words"),
    [
        (-0.05, -0.04, None, "0.050 better than all patients: that alone would explain the gain."),
        (-0.05, -0.09, None, "0.050 better than all patients."),
        (-0.05, 0.01, None, "0.050 better than all patients."),
        (0.05, -0.04, None, "0.050 worse than all patients."),
        (-0.05, -0.04, 0.002, "better than all patients; the predicted losses make up for all but"),
        (0.0001, -0.04, None, "had the same prognosis as all patients."),
    ],
)
def test_what_the_difference_means_is_said(plain, gain, rest, words):
    found = said(plain, gain, rest)
    assert (found.difference, found.std_error) == (plain, 0.01)
    assert words in found.sentence


def test_without_features_nothing_is_said():
    assert summarize_prognosis(assessed(None, -0.1)) is None


class Chooser(Learner):
    def _learn(self, stays, trainer):
        raise NotImplementedError

    path_ = (
        Candidate(0.5, 0.4, 0.1, 1.0, 50.0, chosen=True),
        Candidate(math.nan, math.inf, math.inf, 0.0, 0.0),
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
        Candidate(0.5, 0.4, 0.1, 1.0, 50.0, chosen=True, epochs=7),
        Candidate(math.nan, math.inf, 0.1, 0.0, 0.0),
    )
    first, second = restore_path(summarize_path(path))
    assert first == path[0]
    assert (second.std_error, second.chosen) == (0.1, False)
    assert math.isnan(second.translation)
    assert math.isnan(second.risk)
