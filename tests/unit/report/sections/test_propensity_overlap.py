"""Overlap and propensities on the page."""

import json

from report_documents import Page, render, section_of


def test_weights_and_calibration_are_drawn(page):
    section = section_of(page, "overlap")
    titles = [" ".join(e.text.split()) for e in section.all("figcaption")]
    pooled = "Taken as often as stated?"
    assert titles == ["Weights of the decisions", pooled, "And action by action?"]
    assert "Calibration error" in section.text


def test_what_the_data_cannot_give_is_said_with_its_reason(found):
    made = json.loads(json.dumps(found))
    made["exhibits"]["calibration"] = {"absent": "nobody knows"}
    made["exhibits"]["abstention"] = {"absent": "nobody knows"}
    section = section_of(Page(render(made)), "overlap")
    assert "No calibration, because nobody knows." in section.text
    assert "If the policy speaks only" not in section.text


def test_calibration_is_drawn_action_by_action_beside_plain_frequencies(found):
    made = json.loads(json.dumps(found))
    calibration = made["exhibits"]["calibration"]
    calibration["frequency_log_loss"] = 1.234
    calibration["actions"] = [
        {"name": "none", "stated": 0.04, "observed": 0.5, "std_error": 0.01},
        {"name": "rare", "stated": None, "observed": None, "std_error": None},
    ]
    section = section_of(Page(render(made)), "overlap")
    assert "And action by action?" in section.text
    assert "plain frequencies: 1.234" in section.text
    calibration["actions"] = []
    assert "And action by action?" not in section_of(Page(render(made)), "overlap").text


def test_rows_of_abstention_that_look_the_same_are_one(found):
    made = json.loads(json.dumps(found))
    row = {"coverage": 1.0, "risk": 0.4, "low": 0.3, "high": 0.5, "verdict": "reliable"}
    made["exhibits"]["abstention"] = [
        row | {"support": 0.0},
        row | {"support": 0.02, "risk": 0.40001},
        row | {"support": 0.05, "coverage": 0.9},
    ]
    section = section_of(Page(render(made)), "overlap")
    rows = [" ".join(r.text.split()) for r in section.all("tr") if r.parent.tag == "tbody"]
    assert [words.partition(" 1")[0].partition(" 9")[0] for words in rows] == [
        "at least 0.02",
        "at least 0.05",
    ]
