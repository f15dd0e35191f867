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
    cells = [c.text for c in section.all("td") if c.attributes["data-label"] != "Verdict"]
    assert len(cells) == 4
    assert all(words in cell for cell in cells)
