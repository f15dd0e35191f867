"""Hidden confounding on the page."""

import json

import pytest
from report_documents import Page, render, section_of


@pytest.mark.parametrize(
    ("gain", "gamma", "words"),
    [(None, 1.5, "not known"), (0.1, 1.0, "no gain"), (-0.1, 1.5, "1.50"), (-0.1, None, "over")],
)
def test_what_could_undo_a_gain_is_told_for_every_kind_of_gain(found, gain, gamma, words):
    made = json.loads(json.dumps(found))
    for method in made["methods"]:
        method["gain"] = None if gain is None else {**method["gain"], "difference": gain}
        method["sensitivity"] |= {"gamma_point": gamma, "gamma_interval": gamma}
    page = Page(render(made))
    section = section_of(page, "sensitivity")
    told = ("Could undo the gain", "Chance allowed for")
    cells = [c.text for c in section.all("td") if c.attributes["data-label"] in told]
    assert len(cells) == 4
    assert all(words in cell for cell in cells)


def test_recorded_features_stand_beside_a_hidden_one(found):
    made = json.loads(json.dumps(found))
    method = made["methods"][0]
    method["gain"] = {**method["gain"], "difference": -0.1}
    method["sensitivity"] |= {
        "gamma_point": 2.2,
        "balanced": True,
        "features": [
            {"names": ["lactate"], "gamma": 2.0},
            {"names": ["lactate", "SOFA"], "gamma": 2.5},
        ],
    }
    page = Page(render(made))
    section = section_of(page, "sensitivity")
    assert "lactate and SOFA together" in section.text
    assert "2.50" in section.text
    assert "as strong as lactate and SOFA together (odds ratio 2.50)" in render(made)
