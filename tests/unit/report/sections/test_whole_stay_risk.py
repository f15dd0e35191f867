"""One decision and the whole stay on the page."""

import json

import pytest
from report_documents import Page, render, section_of

RISK = {"estimator": "wdr", "risk": 2.1, "std_error": 0.1, "low": 1.9, "high": 2.3}
WHOLE = {
    "outcome": "sum",
    "estimates": [{**RISK, "label": "Doubly robust", "sentence": "A model, corrected."}],
    "clinicians": {**RISK, "estimator": "logged", "risk": 1.5},
    "gain": {"difference": 0.6, "std_error": 0.1, "low": 0.4, "high": 0.8, "better": False},
    "effective_stays": 120.0,
    "weight_share": 1.0,
    "n_corrected": 3,
    "longest_stay": 8,
    "verdict": "doubtful",
    "reasons": ["For some it rests on a model alone."],
    "sentence": "The policy decides throughout: worse.",
    "one_decision": "One decision changed, the rest as logged: better.",
    "reversal": True,
}


def with_whole(found, **changes):
    made = json.loads(json.dumps(found))
    made["methods"][0]["whole_stay"] = {**WHOLE, **changes}
    return made


def finding(made):
    return section_of(Page(render(made)), "finding").text


def test_both_risks_stand_side_by_side_with_a_picture(found):
    section = section_of(Page(render(with_whole(found))), "whole-stay")
    assert "One decision changed, the rest as logged" in section.text
    assert "The policy decides throughout" in section.text
    assert "rests on a model alone" in section.text
    assert "the first 3" in section.text
    assert len(list(section.all("svg"))) == 1


def test_nobody_looked_and_there_is_no_section(found):
    page = Page(render(found))
    assert not [s for s in page.all("section") if s.attributes.get("id") == "whole-stay"]


@pytest.mark.parametrize(
    ("low", "words"), [(0.4, "is a loss over the whole stay"), (-0.1, "looks like a loss")]
)
def test_a_reversal_is_told_in_the_first_lines(found, low, words):
    gain = {**WHOLE["gain"], "low": low}
    told = finding(with_whole(found, gain=gain))
    assert words in told
    assert told.index(words) < told.index("the risk is estimated")


def test_without_a_reversal_nothing_is_warned_of(found):
    assert "A gain at one decision that" not in finding(with_whole(found, reversal=False))


def test_hidden_numbers_leave_a_page(found):
    nothing = dict.fromkeys(WHOLE["gain"])
    made = with_whole(found, gain=nothing, clinicians=None, effective_stays=None, reversal=False)
    section = section_of(Page(render(made)), "whole-stay")
    assert "not shown" in section.text
    assert "under 11" in section.text


def test_huge_intervals_are_drawn_as_arrows(found):
    gain = {**WHOLE["gain"], "low": -1e6, "high": 1e6}
    section = section_of(Page(render(with_whole(found, gain=gain))), "whole-stay")
    assert len([e for e in section.all("text") if "tip" in e.attributes["class"].split()]) == 2
