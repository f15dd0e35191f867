"""Results as rows of plain values."""

from etips.results.estimate_result import EstimateResult
from etips.results.flat_rows import COLUMNS, flat_rows
from etips.results.method_result import DataSummary, GainResult, MethodResult

FIRST = EstimateResult("sndr", 0.5, 0.1, 0.3, 0.7)
SECOND = EstimateResult("snips", 0.6, 0.1, 0.4, None)
GAIN = GainResult(-0.1, 0.2, -0.3, 0.1, False, 0.4, False)
METHOD = MethodResult("p", (FIRST, SECOND), None, "reliable", ("Because.", "And so."), 0.4, GAIN)
DATA = DataSummary(30, 30, 3, 0, one_decision=True)


def test_a_policy_is_one_row_with_verdict_finding_and_reasons():
    (row,) = flat_rows((METHOD,), DATA)
    assert tuple(row) == COLUMNS
    assert (row["policy"], row["verdict"], row["estimator"]) == ("p", "reliable", "sndr")
    assert (row["risk"], row["difference"], row["true_risk"]) == (0.5, -0.1, 0.4)
    assert row["finding"] == "no difference shown"
    assert row["reasons"] == "Because; And so"


def test_every_estimator_is_a_row_if_asked_and_none_is_one_row_too():
    rows = flat_rows((METHOD,), DATA, every_estimator=True)
    assert [row["estimator"] for row in rows] == ["sndr", "snips"]
    bare = MethodResult("q", (), None, None, (), None)
    (row,) = flat_rows((bare,), DATA)
    assert (row["verdict"], row["estimator"], row["risk"]) == ("no verdict", "none", None)
    assert row["finding"] == "not known"
