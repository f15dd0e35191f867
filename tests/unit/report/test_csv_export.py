"""The table of policies for a spreadsheet."""

import csv
import io

import pytest
from report_documents import document

from etips.report.csv_export import guard, policies_csv
from etips.results.parsing import parse_results


def test_h2_every_row_has_the_verdict_beside_its_number():
    """H2: in the CSV too."""
    made = document(60)
    rows = list(csv.DictReader(io.StringIO(policies_csv(parse_results(made)))))
    assert len(rows) == sum(len(m["estimates"]) for m in made["methods"])
    verdicts = {m["name"]: m["verdict"] for m in made["methods"]}
    for row in rows:
        assert row["verdict"] == verdicts[row["policy"]]
        assert float(row["risk"]) >= 0
    assert list(rows[0])[:4] == ["policy", "verdict", "estimator", "risk"]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", " =", "\x00@"])
def test_p5_a_cell_that_starts_like_a_formula_is_neutralised(start):
    """P5: a spreadsheet shows the name and computes nothing."""
    cell = guard(f"{start}HYPERLINK(1)")
    assert cell.startswith("'")
    assert cell.isprintable()
    assert guard("plain, with a comma") == "plain, with a comma"
