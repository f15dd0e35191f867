"""Results as they are printed, and what they are about."""

from dataclasses import replace

import pytest

from etips.errors import FileError
from etips.results.results import DataSummary, EstimateResult, MethodResult, Results

ESTIMATE = EstimateResult("snips", risk=0.5, std_error=0.1, low=0.3, high=None)
FIRST = MethodResult("p", (ESTIMATE,), None, "doubtful", ("Few decisions carry it.",), None)
RESULTS = Results(DataSummary(30, 1234, 3, 1), (FIRST, replace(FIRST, name="q")), 1.0)


def test_the_printed_form_names_risk_and_verdict_and_what_is_hidden():
    assert str(RESULTS) == repr(RESULTS)
    assert repr(RESULTS) == (
        "Results on 1,234 decisions\n"
        "  p: not known (doubtful)\n"
        "    snips 0.5000 [0.3000, ?]\n"
        "    why doubtful: Few decisions carry it.\n"
        "  q: not known (doubtful)\n"
        "    snips 0.5000 [0.3000, ?]\n"
        "    why doubtful: Few decisions carry it."
    )
    hidden = replace(RESULTS, data=DataSummary(None, None, 3, 1), methods=())
    assert repr(hidden) == "Results on ? decisions"


def test_a_frame_has_a_row_a_policy_or_one_an_estimator():
    assert list(RESULTS.to_frame()["policy"]) == ["p", "q"]
    frame = RESULTS.to_frame(every_estimator=True, library="polars")
    assert frame["verdict"].to_list() == ["doubtful", "doubtful"]
    assert frame["reasons"][0] == "Few decisions carry it"


def test_a_report_is_written_by_its_ending_and_may_be_written_again(tmp_path):
    for _ in range(2):
        assert RESULTS.report(str(tmp_path / "page.html")) == tmp_path / "page.html"
    page = (tmp_path / "page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "Few decisions carry it." in page
    assert RESULTS.report(tmp_path / "t.csv").read_text().startswith("policy,verdict,")
    with pytest.raises(FileError, match=r"must end in \.html or \.csv"):
        RESULTS.report(tmp_path / "page.pdf")


def test_a_notebook_gets_a_table_with_the_reasons():
    shown = RESULTS._repr_html_()
    assert shown.startswith("<table")
    assert shown.count("<tr>") == 3
    assert "verdict: doubtful" in shown
    assert "Few decisions carry it." in shown


def test_without_exhibits_a_report_is_about_the_first_policy():
    assert RESULTS.headline is FIRST
    assert replace(RESULTS, methods=()).headline is None
