"""Cohort and missing values on the page."""

import json

from report_documents import Page, render, section_of


def test_bars_of_the_flow_are_as_long_as_their_counts(found):
    made = json.loads(json.dumps(found))
    names = ("all", "half", "hidden")
    counts = (200, 100, None)
    stages = [{"name": n, "count": c} for n, c in zip(names, counts, strict=True)]
    made["exhibits"]["flow"] |= {"stages": stages, "source": "cohort"}
    section = section_of(Page(render(made)), "flow")
    bars = [e.attributes["style"] for e in section.all("span") if e.attributes["class"] == "bar"]
    assert bars[:3] == ["width:100.0%", "width:50.0%", "width:0.0%"]
    assert "From all stays of the source" in section.text


def test_features_without_gaps_are_counted_in_one_sentence(found, page):
    n = found["exhibits"]["missingness"]["n_features"]
    text = " ".join(section_of(page, "flow").text.split())
    assert f"No value is missing in any of the {n} features" in text


def test_steps_of_the_same_count_share_a_row(found):
    made = json.loads(json.dumps(found))
    flow = made["exhibits"]["flow"]
    flow["stages"] = [{"name": name, "count": 90} for name in ("all stays", "with a decision")]
    flow |= {"n_steps": 300, "n_decisions": 300}
    section = section_of(Page(render(made)), "flow")
    rows = [" ".join(row.text.split()) for row in section.all("li")]
    assert rows[:2] == [
        "all stays; with a decision 90",
        "steps in these stays; decisions evaluated 300",
    ]
