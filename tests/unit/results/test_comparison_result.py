"""A comparison as data."""

from etips.results.comparison_result import CLINICIANS, COLUMNS, Comparison, Figure, PairResult
from etips.results.method_result import DataSummary


def test_a_hidden_pair_is_a_row_without_numbers():
    data = DataSummary(n_stays=300, n_decisions=300, n_actions=2, lag=0)
    pair = PairResult("a", CLINICIANS, Figure(), None, None, None, "reliable", (), "unknown", "hid")
    comparison = Comparison(data, (), (pair,), "snips")
    frame = comparison.to_frame(library="polars")
    assert tuple(frame.columns) == COLUMNS
    assert frame["difference"].to_list() == [None]
    assert "hidden or not known" in repr(comparison)
    assert comparison.to_json()["pairs"][0]["difference"]["value"] is None
    assert pair.conclusion.kind == "unknown"
