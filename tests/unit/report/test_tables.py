"""Results as tables, for a spreadsheet and in a notebook; results as a file."""

import csv
import io
import re

import pytest
from report_documents import Page, document
from test_page import contrast

from etips.errors import FileError
from etips.report.page import write_report
from etips.report.tables import COLOURS, guard, policies_csv, show_policies
from etips.results.conclusions import KINDS
from etips.results.parsing import parse_results


def test_h2_every_row_has_the_verdict_beside_its_number(found):
    """H2: in the CSV too."""
    rows = list(csv.DictReader(io.StringIO(policies_csv(parse_results(found)))))
    assert len(rows) == sum(len(m["estimates"]) for m in found["methods"])
    verdicts = {m["name"]: m["verdict"] for m in found["methods"]}
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


def test_every_policy_has_a_row_in_a_notebook_with_finding_verdict_risk_and_reasons(found):
    rows = Page(show_policies(parse_results(found))).all("tr")[1:]
    for row, method in zip(rows, found["methods"], strict=True):
        text = " ".join(row.text.split())
        assert method["verdict"] in text
        assert f"{method['estimates'][0]['risk']:.3f}" in text
        for reason in method["reasons"]:
            assert reason in text
    hostile = document(60, names=("<script>alert(1)</script>", "q"))
    shown = show_policies(parse_results(hostile))
    assert "<script" not in shown
    assert re.search("&lt;script&gt;", shown)


def test_every_finding_has_colours_that_can_be_read_by_day_and_night():
    """Letters have their own ground, so that the notebook's does not matter."""
    assert set(COLOURS) == {kind for kind, _, _ in KINDS}
    for ink, ground in COLOURS.values():
        assert contrast(ink, ground) >= 4.5


def test_the_ending_says_page_or_table(found, tmp_path):
    results = parse_results(found)
    assert write_report(results, tmp_path / "a.html").read_text().startswith("<!doctype")
    assert write_report(results, tmp_path / "a.csv").read_text().startswith("policy,")
    with pytest.raises(FileError, match=r"must end in \.html or \.csv"):
        write_report(results, tmp_path / "a.txt")
    assert len(list(tmp_path.iterdir())) == 2
