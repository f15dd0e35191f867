"""Overlap and propensities on the page."""

import json

from report_documents import Page, render, section_of


def test_weights_and_calibration_are_drawn(page):
    section = section_of(page, "overlap")
    titles = [" ".join(e.text.split()) for e in section.all("figcaption")]
    assert titles == ["Weights of the decisions", "Taken as often as stated?"]
    assert "Calibration error" in section.text


def test_what_the_data_cannot_give_is_said_with_its_reason(found):
    made = json.loads(json.dumps(found))
    made["exhibits"]["calibration"] = {"absent": "nobody knows"}
    made["exhibits"]["abstention"] = {"absent": "nobody knows"}
    section = section_of(Page(render(made)), "overlap")
    assert "No calibration, because nobody knows." in section.text
    assert "If the policy speaks only" not in section.text
