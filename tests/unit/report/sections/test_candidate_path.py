"""The translation path on the page."""

import json

from report_documents import PATH, Page, render, section_of


def test_the_path_marks_the_kept_candidate_and_those_not_trusted(page):
    section = section_of(page, "path")
    rows = [" ".join(r.text.split()) for r in section.all("tr") if r.parent.tag == "tbody"]
    assert len(rows) == len(PATH)
    assert rows[1].startswith("translation 0.6 no ")
    assert rows[2].startswith("translation 0.8 (kept) yes ")
    assert rows[3].startswith("always action 1 yes ")
    hollow = [e for e in section.all("circle") if "hollow" in e.attributes["class"]]
    assert len(hollow) == 3  # one candidate, three drawings


def test_a_lone_candidate_is_told_and_not_drawn(found):
    made = json.loads(json.dumps(found))
    made["exhibits"]["paths"] = {"p": made["exhibits"]["paths"]["p"][2:3]}
    section = section_of(Page(render(made)), "path")
    assert not list(section.all("svg"))
    assert "One candidate only" in section.text
    assert "translation 0.8 (kept)" in section.text
