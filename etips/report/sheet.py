"""The table of policies for a spreadsheet, which must not take a name for a formula."""

import csv
import io
from collections.abc import Mapping
from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_COLUMNS = (
    *("policy", "verdict", "estimator", "risk", "std_error", "low", "high"),
    *("difference", "difference_low", "difference_high", "better"),
    *("matching_factor", "effective_sample_size", "true_risk"),
)


def policies_csv(document: Mapping[str, Any]) -> str:
    """One row a policy and estimator, each with the verdict beside the number."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for method in document["methods"]:
        gain, found = method.get("gain") or {}, method.get("diagnostics") or {}
        for estimate in method["estimates"] or [{}]:
            writer.writerow(
                [
                    guard(method["name"]),
                    method["verdict"] or "no verdict",
                    guard(estimate.get("estimator", "none")),
                    *(estimate.get(key) for key in ("risk", "std_error", "low", "high")),
                    *(gain.get(key) for key in ("difference", "low", "high", "better")),
                    found.get("matching_factor"),
                    found.get("effective_sample_size"),
                    method["truth"],
                ]
            )
    return file.getvalue()


def guard(text: object) -> str:
    """Text that a spreadsheet shows and never computes; control characters become spaces."""
    words = "".join(c if c.isprintable() else " " for c in str(text))
    return (
        f"'{words}"
        if str(text).startswith(_FORMULA) or words.lstrip().startswith(_FORMULA)
        else words
    )
