"""A negative control on the page."""

import json

from report_documents import Page, render, section_of

CONTROL = {
    "name": "lactate before",
    "seen": False,
    "difference": -0.5,
    "low": -0.8,
    "high": -0.2,
    "level": 0.99,
    "spread": 2.0,
    "warning": True,
}


def made(found, **changed):
    document = json.loads(json.dumps(found))
    for method in document["methods"]:
        method["negative_control"] = {**CONTROL, **changed}
    return document


def test_without_a_control_there_is_no_such_section(found):
    assert 'id="negative-control"' not in render(found)


def test_a_warning_is_a_word_and_the_size_is_in_standard_deviations(found):
    section = section_of(Page(render(made(found))), "negative-control")
    for words in ("lactate before", "no: a warning", "\u22120.25", "99\u00a0%"):
        assert words in section.text
    quiet = section_of(
        Page(render(made(found, low=-1.0, high=0.1, warning=False))), "negative-control"
    )
    assert "it could be" in quiet.text


def test_a_feature_is_said_to_test_the_propensities_and_no_number_is_none(found):
    section = section_of(Page(render(made(found, seen=True))), "negative-control")
    assert "which the propensities used" in section.text
    none = made(found, difference=None, low=None, high=None, spread=None, warning=False)
    assert "not known" in section_of(Page(render(none)), "negative-control").text
