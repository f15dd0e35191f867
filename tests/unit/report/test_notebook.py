"""The table that a notebook shows."""

import re

from report_documents import Page, document
from test_style import contrast

from etips.report.notebook import COLOURS, show_policies
from etips.results.conclusions import KINDS
from etips.results.parsing import parse_results


def test_every_policy_has_a_row_with_finding_verdict_risk_and_reasons():
    made = document(80)
    page = Page(show_policies(parse_results(made)))
    rows = page.all("tr")[1:]
    assert len(rows) == len(made["methods"])
    for row, method in zip(rows, made["methods"], strict=True):
        text = " ".join(row.text.split())
        assert method["verdict"] in text
        assert f"{method['estimates'][0]['risk']:.3f}" in text
        for reason in method["reasons"]:
            assert reason in text


def test_every_finding_has_colours_that_can_be_read_by_day_and_night():
    """Letters have their own ground, so that the notebook's does not matter."""
    assert set(COLOURS) == {kind for kind, _, _ in KINDS}
    for ink, ground in COLOURS.values():
        assert contrast(ink, ground) >= 4.5


def test_a_hostile_name_is_text():
    made = document(60, names=("<script>alert(1)</script>", "q"))
    shown = show_policies(parse_results(made))
    assert "<script" not in shown
    assert re.search("&lt;script&gt;", shown)
