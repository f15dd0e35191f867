"""One policy as results hold it."""

import pytest

from etips.results.estimate_result import EstimateResult
from etips.results.method_result import MethodResult

ESTIMATE = EstimateResult("snips", risk=0.5, std_error=0.1, low=0.3, high=None)


def test_no_number_stands_without_a_verdict():
    with pytest.raises(ValueError, match="no verdict"):
        MethodResult("p", (ESTIMATE,), None, None, (), None)
    MethodResult("p", (), None, None, (), 0.4)
