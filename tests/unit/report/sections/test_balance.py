"""Balance on the page."""

import json

from report_documents import Page, render, section_of


def test_the_largest_differences_are_drawn_and_all_are_counted(found, page):
    section = section_of(page, "balance")
    balance = found["exhibits"]["balance"]
    assert f"of {balance['n_features']} features" in section.text
    assert len(list(section.all("svg"))) == 1


def test_balance_that_cannot_be_shown_says_why(found):
    made = json.loads(json.dumps(found))
    made["exhibits"]["balance"] = {"absent": "there is no feature to compare"}
    assert "because there is no feature" in section_of(Page(render(made)), "balance").text
    made["exhibits"] = None
    assert "was not recorded" in section_of(Page(render(made)), "balance").text
