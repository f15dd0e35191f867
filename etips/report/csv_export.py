"""The table of policies for a spreadsheet, which must not take a name for a formula."""

import csv
import io
from collections.abc import Iterator

from etips.results.results import EstimateResult, GainResult, MethodResult, Results

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_COLUMNS = (
    *("policy", "verdict", "estimator", "risk", "std_error", "low", "high"),
    *("difference", "difference_low", "difference_high", "better"),
    *("better_at_one_decision", "in_sample"),
    *("matching_factor", "effective_sample_size", "true_risk"),
)
_NO_ESTIMATE = EstimateResult("none", risk=None, std_error=None, low=None, high=None)


def policies_csv(results: Results) -> str:
    """One row a policy and estimator, each with the verdict beside the number."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for method in results.methods:
        writer.writerows(_rows(method))
    return file.getvalue()


def _rows(method: MethodResult) -> Iterator[list[object]]:
    gain, diagnostics = method.gain or GainResult(), method.diagnostics
    for estimate in method.estimates or (_NO_ESTIMATE,):
        yield [
            guard(method.name),
            method.verdict or "no verdict",
            guard(estimate.estimator),
            *(estimate.risk, estimate.std_error, estimate.low, estimate.high),
            *(gain.difference, gain.low, gain.high, gain.better),
            *(gain.better_at_one_decision, method.in_sample),
            None if diagnostics is None else diagnostics.matching_factor,
            None if diagnostics is None else diagnostics.effective_sample_size,
            method.truth,
        ]


def guard(text: object) -> str:
    """Text that a spreadsheet shows and never computes; control characters become spaces."""
    words = "".join(c if c.isprintable() else " " for c in str(text))
    return (
        f"'{words}"
        if str(text).startswith(_FORMULA) or words.lstrip().startswith(_FORMULA)
        else words
    )
