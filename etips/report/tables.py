"""Results as tables: for a spreadsheet, and inside a notebook, coloured by finding."""

import csv
import io
from collections.abc import Mapping, Sequence

from etips.report.section import fill
from etips.report.wording import FOUND_MARKS, count, number
from etips.results.comparison_result import Comparison, PairResult
from etips.results.conclusions import Conclusion, Kind, conclude
from etips.results.records import NOTICE, MethodResult
from etips.results.results import COLUMNS, Results, flat_rows

COLOURS: Mapping[Kind, tuple[str, str]] = {
    "better": ("#00694e", "#e2f3ec"),
    "partly": ("#00558a", "#e1eefa"),
    "none": ("#4a545d", "#e9edf0"),
    "worse": ("#7d2468", "#f7e6f3"),
    "doubtful": ("#8a4600", "#fdeedb"),
    "unusable": ("#a31621", "#fce6e6"),
    "unknown": ("#4a545d", "#e9edf0"),
}
"""Letters and ground of each finding: a notebook may be light or dark, so both are set."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def policies_csv(results: Results) -> str:
    """One row a policy and estimator, each with the verdict beside the number."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in flat_rows(results.methods, results.data, every_estimator=True):
        writer.writerow([guard(v) if isinstance(v, str) else v for v in row.values()])
    return file.getvalue()


def guard(text: str) -> str:
    """Text that a spreadsheet shows and never computes; control characters become spaces."""
    words = "".join(c if c.isprintable() else " " for c in text)
    computes = text.startswith(_FORMULA) or words.lstrip().startswith(_FORMULA)
    return f"'{words}" if computes else words


def show_policies(results: Results) -> str:
    """The policies inside a notebook; names are text, whatever they hold."""
    data = results.data
    caption = (
        f"{count(data.n_decisions)} decisions; the clinicians' risk is "
        f"{number(data.mean_loss)}, lower is better."
    )
    columns = ("Policy", "Finding", "Risk", "Against the clinicians", "Why")
    methods = [(method, conclude(method, data)) for method in results.methods]
    return _show(caption, columns, methods=methods)


def show_pairs(comparison: Comparison) -> str:
    """The differences inside a notebook."""
    caption = (
        f"{count(comparison.data.n_decisions)} decisions; first minus second, below zero the first "
        "is better."
    )
    columns = ("Compared", "Finding", "Difference", "p (Holm)", "Why")
    return _show(caption, columns, pairs=comparison.pairs)


def _show(
    caption: str,
    columns: Sequence[str],
    *,
    methods: Sequence[tuple[MethodResult, Conclusion]] = (),
    pairs: Sequence[PairResult] = (),
) -> str:
    context = {
        "caption": f"{caption} {NOTICE}",
        "columns": columns,
        "methods": methods,
        "pairs": pairs,
        "colours": COLOURS,
        "marks": FOUND_MARKS,
    }
    return str(fill("notebook.html", context))
