"""Actions on the page."""

import json

from report_documents import Page, document, render, section_of


def test_dose_maps_are_drawn_for_a_grid_and_bars_otherwise(page):
    assert "dose class" not in page.root.text
    grid = Page(render(document(world="icu-sepsis", full=False)))
    section = section_of(grid, "actions")
    assert len(list(section.all("figure"))) == 3
    assert section.text.count("fluid dose class") == 3
    cells = [e for e in section.all("rect") if e.attributes.get("class") == "cell"]
    assert len(cells) == 75 + 7  # those of the legend
    assert [e for e in section.all("rect") if e.attributes.get("fill") == "url(#thin)"]


def test_dose_classes_are_told_with_their_range_and_the_colours_have_a_legend():
    made = json.loads(json.dumps(document(world="icu-sepsis", full=False)))
    levels = ["none", "up to 50 mL (median 30 mL)", "a", "b", "over 530 mL (median 900 mL)"]
    made["exhibits"]["actions"]["grid"]["row_levels"] = levels
    section = section_of(Page(render(made)), "actions")
    text = " ".join(section.text.split())
    assert "Class of fluid Dose 0 none 1 up to 50 mL (median 30 mL)" in text
    assert "A recommended class means: a dose within its range." in text
    assert "hardly ever given to such patients" in text
    assert "Class of vasopressor" not in text  # nobody knows


def test_of_a_policy_that_draws_the_bars_show_what_it_takes():
    made = json.loads(json.dumps(document()))
    actions = made["exhibits"]["actions"]
    n = len(actions["names"])
    actions["recommended_share"] = actions["policy_share"] = [1.0, *[0.0] * (n - 1)]
    section = " ".join(section_of(Page(render(made)), "actions").text.split())
    assert "draws among actions" not in section
    actions["policy_share"] = [1 / n] * n
    drawn = " ".join(section_of(Page(render(made)), "actions").text.split())
    assert "The policy draws among actions: shown is how often it would take each" in drawn
    assert "Policy takes it" in drawn
