"""Estimators side by side."""

import json

from report_documents import Page, render, section_of


def test_every_policy_has_a_drawing_of_all_its_estimates(found, page):
    section = section_of(page, "evidence")
    assert len(list(section.all("figure"))) == len(found["methods"])
    for drawing, method in zip(section.all("svg"), found["methods"], strict=True):
        for estimate in method["estimates"]:
            assert estimate["label"] in drawing.text


def test_a_formula_that_is_not_ours_is_called_by_its_name_and_not_explained(found):
    made = json.loads(json.dumps(found))
    made["methods"][0]["estimates"][0] |= {"estimator": "own", "label": None, "sentence": None}
    section = section_of(Page(render(made)), "evidence")
    assert "own" in next(section.all("svg")).text
    assert "own" not in [term.text for term in section.all("dt")]
