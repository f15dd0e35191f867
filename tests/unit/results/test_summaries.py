"""Evaluations made fit to be shown."""

from dataclasses import replace

import numpy as np
import pytest
from hospital_stays import hospital, make_exhibits

from etips.evaluation.diagnostics import diagnose
from etips.evaluation.log import view
from etips.results.evaluate import assess_policies
from etips.results.summaries import summarize_data


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
        assert method.gain.difference is None
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
