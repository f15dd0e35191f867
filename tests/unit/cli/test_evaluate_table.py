"""The table that `etips evaluate` prints."""

from etips.cli.evaluate import _row
from etips.results.results import EstimateResult, MethodResult


def test_a_line_has_room_for_two_estimates_beside_the_headline():
    """With three, the interval of the headline is cut in two on a terminal of eighty columns."""
    estimates = tuple(
        EstimateResult(name, risk=0.5, std_error=0.1, low=0.4, high=0.6)
        for name in ("dm", "snips", "ips", "dr", "sndr")
    )
    line = _row(MethodResult("policy", estimates, None, "reliable", (), None))
    assert list(line) == ["policy", "dm", "ips", "dr", "factor", "verdict"]
