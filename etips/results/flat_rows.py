"""Results as rows of plain values, for a spreadsheet or a frame: a verdict beside each number."""

from collections.abc import Iterable, Iterator, Mapping

from etips.results.conclusions import conclude
from etips.results.estimate_result import EstimateResult
from etips.results.method_result import DataSummary, GainResult, MethodResult

Value = str | float | bool | None
"""Of a cell; None is hidden or not known."""

COLUMNS = (
    *("policy", "verdict", "estimator", "risk", "std_error", "low", "high"),
    *("difference", "difference_low", "difference_high", "better"),
    *("better_at_one_decision", "in_sample"),
    *("matching_factor", "effective_sample_size", "true_risk", "finding", "reasons"),
)
"""Of a row, in this order."""

_NO_ESTIMATE = EstimateResult("none", risk=None, std_error=None, low=None, high=None)


def flat_rows(
    methods: Iterable[MethodResult], data: DataSummary, *, every_estimator: bool = False
) -> list[Mapping[str, Value]]:
    """One row a policy, or one a policy and estimator.

    Args:
        methods: The policies.
        data: What they were judged on.
        every_estimator: Whether all estimators are wanted, and not the headline alone.
    """
    return [row for own in methods for row in _rows(own, data, every=every_estimator)]


def _rows(method: MethodResult, data: DataSummary, *, every: bool) -> Iterator[Mapping[str, Value]]:
    gain, diagnostics = method.gain or GainResult(), method.diagnostics
    estimates = method.estimates or (_NO_ESTIMATE,)
    for estimate in estimates if every else estimates[:1]:
        values: tuple[Value, ...] = (
            method.name,
            method.verdict or "no verdict",
            estimate.estimator,
            *(estimate.risk, estimate.std_error, estimate.low, estimate.high),
            *(gain.difference, gain.low, gain.high, gain.better),
            *(gain.better_at_one_decision, method.in_sample),
            None if diagnostics is None else diagnostics.matching_factor,
            None if diagnostics is None else diagnostics.effective_sample_size,
            method.truth,
            conclude(method, data).words,
            "; ".join(reason.rstrip(".") for reason in method.reasons),
        )
        yield dict(zip(COLUMNS, values, strict=True))
