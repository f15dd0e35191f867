"""Missing losses on the page."""

import json

from report_documents import Page, render, section_of

TOLD = {
    "treatment": "drop",
    "n_missing": 70,
    "n_taken": 400,
    "by_action": [
        {"action": 0, "n_missing": 20, "n_taken": 200},
        {"action": 1, "n_missing": 50, "n_taken": 100},
    ],
    "raised_share": None,
    "sentence": "70 of 400",
}


def made(found, told, bounds=None):
    document = json.loads(json.dumps(found))
    document["data"]["missing_loss"] = told
    document["methods"][0]["missing_loss"] = bounds
    return document


def test_without_missing_losses_there_is_no_such_section(found):
    assert 'id="missing-losses"' not in render(made(found, None))


def test_they_are_counted_by_action_the_largest_share_first(found):
    section = section_of(Page(render(made(found, TOLD))), "missing-losses")
    assert "70 of 400" in section.text
    assert "They are left out" in section.text
    shares = [c.text.strip() for c in section.all("td") if c.attributes["data-label"] == "Share"]
    assert shares == ["50\u00a0%", "10\u00a0%"]


def test_few_are_not_counted(found):
    few = {**TOLD, "n_missing": None, "n_taken": None, "by_action": []}
    assert "A few" in section_of(Page(render(made(found, few))), "missing-losses").text


def test_what_they_could_have_been_is_shown_where_they_are_weighted(found):
    limits = {"risk_low": 0.1, "risk_high": 0.4, "gain_low": -0.2, "gain_high": 0.1}
    bounds = {"gamma_point": 1.8, "bounds": [{"gamma": 1.0, **limits}, {"gamma": None, **limits}]}
    told = {**TOLD, "treatment": "weight", "raised_share": 0.01}
    section = section_of(Page(render(made(found, told, bounds))), "missing-losses")
    for words in ("speaks for others", "anything", "factor of 1.80", "raised to 5"):
        assert words in section.text
