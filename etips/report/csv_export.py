"""The table of policies for a spreadsheet, which must not take a name for a formula."""

import csv
import io

from etips.results.flat_rows import COLUMNS, flat_rows
from etips.results.results import Results

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def policies_csv(results: Results) -> str:
    """One row a policy and estimator, each with the verdict beside the number."""
    rows = flat_rows(results.methods, results.data, every_estimator=True)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([guard(v) if isinstance(v, str) else v for v in row.values()])
    return file.getvalue()


def guard(text: object) -> str:
    """Text that a spreadsheet shows and never computes; control characters become spaces."""
    words = "".join(c if c.isprintable() else " " for c in str(text))
    return (
        f"'{words}"
        if str(text).startswith(_FORMULA) or words.lstrip().startswith(_FORMULA)
        else words
    )
