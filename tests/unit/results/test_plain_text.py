"""Results as rows, frames and lines of text."""

from dataclasses import replace

import polars as pl
import pytest

from etips.errors import FileError, SettingError
from etips.results import results as results_module
from etips.results.comparison_result import Bar, draw_bar, draw_bars
from etips.results.records import DataSummary, EstimateResult, GainResult, MethodResult
from etips.results.results import COLUMNS, Results, describe, flat_rows, make_frame

HEAD = EstimateResult("sndr", 0.5, 0.1, 0.3, None)
GAIN = GainResult(-0.1, 0.2, -0.3, 0.1, False, 0.4, False)
METHOD = MethodResult("p", (HEAD,), None, "doubtful", ("Few decisions carry it.",), None, GAIN)
DATA = DataSummary(30, 1234, 3, 0, mean_loss=0.6, one_decision=True)


def test_a_verdict_is_printed_with_its_reasons():
    assert describe("Results", (METHOD,), DATA) == (
        "Results on 1,234 decisions, mean logged loss 0.6000\n"
        "  p: no difference shown, doubtful\n"
        "    sndr 0.5000 [0.3000, ?]\n"
        "    against the clinicians -0.1000 [-0.3000, +0.1000]\n"
        "    why doubtful: Few decisions carry it."
    )


def test_what_is_hidden_is_a_question_mark():
    hidden = replace(DATA, n_decisions=None, mean_loss=None)
    method = replace(METHOD, gain=None, reasons=(), verdict="reliable")
    assert describe("Results", (method,), hidden) == (
        "Results on ? decisions\n  p: not known (reliable)\n    sndr 0.5000 [0.3000, ?]"
    )


FIRST = EstimateResult("sndr", 0.5, 0.1, 0.3, 0.7)
SECOND = EstimateResult("snips", 0.6, 0.1, 0.4, None)
FLAT_ROWS_GAIN = GainResult(-0.1, 0.2, -0.3, 0.1, False, 0.4, False)
FLAT_ROWS_METHOD = MethodResult(
    "p", (FIRST, SECOND), None, "reliable", ("Because.", "And so."), 0.4, FLAT_ROWS_GAIN
)
FLAT_ROWS_DATA = DataSummary(30, 30, 3, 0, one_decision=True)


def test_a_policy_is_one_row_with_verdict_finding_and_reasons():
    (row,) = flat_rows((FLAT_ROWS_METHOD,), FLAT_ROWS_DATA)
    assert tuple(row) == COLUMNS
    assert (row["policy"], row["verdict"], row["estimator"]) == ("p", "reliable", "sndr")
    assert (row["risk"], row["difference"], row["true_risk"]) == (0.5, -0.1, 0.4)
    assert row["finding"] == "no difference shown"
    assert row["reasons"] == "Because; And so"


def test_every_estimator_is_a_row_if_asked_and_none_is_one_row_too():
    rows = flat_rows((FLAT_ROWS_METHOD,), FLAT_ROWS_DATA, every_estimator=True)
    assert [row["estimator"] for row in rows] == ["sndr", "snips"]
    bare = MethodResult("q", (), None, None, (), None)
    (row,) = flat_rows((bare,), FLAT_ROWS_DATA)
    assert (row["verdict"], row["estimator"], row["risk"]) == ("no verdict", "none", None)
    assert row["finding"] == "not known"


ROWS = ({"policy": "p", "risk": 0.5}, {"policy": "q", "risk": None})
NAMES = ("policy", "risk")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_has_a_row_for_each_row_and_the_columns_in_order(library):
    pytest.importorskip(library)
    frame = make_frame(ROWS, NAMES, library)
    assert type(frame).__module__.partition(".")[0] == library
    assert list(frame.columns) == ["policy", "risk"]
    assert frame.shape == (2, 2)
    assert frame["risk"][0] == 0.5
    assert make_frame((), NAMES, library).shape == (0, 2)


def test_pandas_comes_first_where_it_is_installed_and_polars_where_it_is_not(monkeypatch):
    pandas = pytest.importorskip("pandas")
    assert isinstance(make_frame(ROWS, NAMES), pandas.DataFrame)
    monkeypatch.setattr(results_module, "find_spec", lambda name: None)
    assert isinstance(make_frame(ROWS, NAMES), pl.DataFrame)
    with pytest.raises(SettingError, match=r"^library: must be polars: pandas is not installed"):
        make_frame(ROWS, NAMES, "pandas")


def test_any_other_library_is_refused():
    with pytest.raises(SettingError, match=r"^library: must be pandas or polars"):
        make_frame(ROWS, NAMES, "arrow")


ESTIMATE = EstimateResult("snips", risk=0.5, std_error=0.1, low=0.3, high=None)
RESULTS_FIRST = MethodResult("p", (ESTIMATE,), None, "doubtful", ("Few decisions carry it.",), None)
RESULTS = Results(
    DataSummary(30, 1234, 3, 1), (RESULTS_FIRST, replace(RESULTS_FIRST, name="q")), 1.0
)


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
    assert RESULTS.headline is RESULTS_FIRST
    assert replace(RESULTS, methods=()).headline is None


def test_the_point_stands_where_the_number_is_and_zero_in_the_middle():
    line = draw_bar(Bar("a", -0.5, -0.8, -0.2), 1.0)
    assert len(line) == 23
    assert line[11] == ":"
    assert line.index("o") == round(0.25 * 22)
    assert line.index("-") == round(0.1 * 22)
    assert draw_bar(Bar("a", 0.0, -0.2, 0.2), 1.0)[11] == "o"
    assert draw_bar(Bar("a", 0.4, -0.2, 0.9), 1.0)[11] == "+"


def test_what_goes_on_has_an_arrow_and_what_is_hidden_nothing():
    assert draw_bar(Bar("a", 0.0, -9.0, 9.0), 1.0).startswith("<")
    assert draw_bar(Bar("a", 0.0, -9.0, 9.0), 1.0).endswith(">")
    assert draw_bar(Bar("a", None, None, None), 1.0).strip() == ":"


def test_no_line_is_wider_than_a_terminal():
    bars = [
        Bar("a policy with a very long name - another one of the kind", -0.1, -0.3, 0.2, "x " * 90),
        Bar("b", None, None, None, "hidden"),
        Bar("c", 12.5, -100.25, 3000.5),
    ]
    lines = draw_bars(bars[:2])
    assert max(map(len, lines)) <= 80
    assert any("another one of the kind" in line for line in lines)
    assert draw_bars([])


def test_nothing_has_no_sign_of_its_own():
    line = draw_bars([Bar("a", -1e-9, -1e-7, 1e-9)])[1]
    assert "+0.0000 [+0.0000, +0.0000]" in line
