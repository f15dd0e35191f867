"""Plots made of rows: intervals and lying bars."""

import pytest
from report_charts import in_words
from report_documents import Page

from etips.report.row_plots import Axis, Row, bars, interval_rows, intervals, risk_scale
from etips.report.svg import Scale
from etips.results.results import EstimateResult, MethodResult


def method_with(low, high, verdict="doubtful"):
    estimate = EstimateResult("snips", (low + high) / 2, 0.1, low, high)
    return MethodResult("p", (estimate,), None, verdict, (), None)


def test_names_of_bars_stand_beside_them():
    page = Page(str(bars(in_words("bars"), "bars", shares=False)))
    names = [e for e in page.all("text") if e.attributes["class"] == "tick end"]
    drawn = [e for e in page.all("rect") if e.attributes["height"] == "9"]
    for place, label in enumerate(names):
        group = [b for b in drawn if 32 * place <= float(b.attributes["y"]) < 32 * (place + 1)]
        tops = [float(b.attributes["y"]) for b in group]
        if len(tops) == 2:
            middle = (min(tops) + max(tops) + 9) / 2
            assert float(label.attributes["y"]) - 4 == pytest.approx(middle, abs=1)


@pytest.mark.parametrize(
    ("low", "high", "tips"),
    [(0.3, 0.5, 0), (0.1, 0.5, 1), (0.1, 0.9, 2), (0.85, 0.9, 1), (0.1, 0.15, 1)],
)
def test_an_interval_beyond_the_scale_points_where_it_goes_on(low, high, tips):
    page = Page(str(intervals(method_with(low, high), Scale(0.2, 0.8, 0, 100), None)))
    assert len([e for e in page.all("text") if "tip" in e.attributes["class"].split()]) == tips


def test_a_policy_without_evidence_does_not_stretch_the_scale():
    sound, wild = method_with(0.3, 0.5), method_with(-9.0, 9.0, "unusable")
    assert risk_scale([sound, wild], None) == risk_scale([sound], None)
    assert risk_scale([wild], None).high >= 9


def test_rows_are_as_wide_as_there_is_room_and_letters_keep_their_size():
    rows = [Row("first", 0.5, 0.3, 0.7, "0.500", strong=True), Row("second", None, None, None, "-")]
    axis = Axis(Scale(0.0, 1.0, 0, 100), "risk", guide=0.4, truth=0.6)
    page = Page(str(interval_rows(rows, axis, "two rows")))
    (drawing,) = page.all("svg")
    assert "viewBox" not in drawing.attributes
    assert "width:calc(100% - " in drawing.attributes["style"]
    (dot,) = page.all("circle")
    assert dot.attributes["cx"] == "50.00%"
    (error,) = [e for e in page.all("line") if "error" in e.attributes["class"]]
    assert (error.attributes["x1"], error.attributes["x2"]) == ("30.00%", "70.00%")
    assert {"first", "second", "0.500", "risk", "\u25c6"} <= {e.text for e in page.all("text")}
