"""Results as they are printed, and what they are about."""

from dataclasses import replace

import pytest

from etips.results.results import DataSummary, EstimateResult, MethodResult, Results

ESTIMATE = EstimateResult("snips", risk=0.5, std_error=0.1, low=0.3, high=None)
FIRST = MethodResult("p", (ESTIMATE,), None, "doubtful", (), None)
RESULTS = Results(DataSummary(30, 1234, 3, 1), (FIRST, replace(FIRST, name="q")), 1.0)


def test_the_printed_form_names_risk_and_verdict_and_what_is_hidden():
    assert repr(RESULTS) == (
        "Results on 1,234 decisions\n"
        "  p: snips 0.5000 [0.3000, ?], doubtful\n"
        "  q: snips 0.5000 [0.3000, ?], doubtful"
    )
    hidden = replace(RESULTS, data=DataSummary(None, None, 3, 1), methods=())
    assert repr(hidden) == "Results on ? decisions"


def test_without_exhibits_a_report_is_about_the_first_policy():
    assert RESULTS.headline is FIRST
    assert replace(RESULTS, methods=()).headline is None


def test_no_number_stands_without_a_verdict():
    with pytest.raises(ValueError, match="no verdict"):
        MethodResult("p", (ESTIMATE,), None, None, (), None)
    MethodResult("p", (), None, None, (), 0.4)
