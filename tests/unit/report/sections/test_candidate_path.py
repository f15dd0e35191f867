"""The translation path on the page."""

import json

from report_documents import PATH, Page, render, section_of


def test_the_path_marks_the_kept_candidate_and_those_not_trusted(page):
    section = section_of(page, "path")
    rows = [" ".join(r.text.split()) for r in section.all("tr") if r.parent.tag == "tbody"]
    assert len(rows) == len(PATH)
    assert rows[1].startswith("translation 0.6, drawn no ")
    assert rows[2].startswith("translation 0.8, drawn (kept) yes ")
    assert rows[3].startswith("always action 1 yes ")
    hollow = [e for e in section.all("circle") if "hollow" in e.attributes["class"]]
    assert len(hollow) == 2  # one candidate, three drawings; its size of 9 is hidden
    assert "hidden" in rows[1]


def test_a_lone_candidate_is_told_and_not_drawn(found):
    made = json.loads(json.dumps(found))
    made["exhibits"]["paths"] = {"p": made["exhibits"]["paths"]["p"][2:3]}
    section = section_of(Page(render(made)), "path")
    assert not list(section.all("svg"))
    assert "One translation only" in section.text
    assert "translation 0.8, drawn (kept)" in section.text


def test_the_kept_risk_is_said_to_be_after_selection_and_corrected(found):
    made = json.loads(json.dumps(found))
    kept = made["exhibits"]["paths"]["p"][2]
    assert "takes folds" in section_of(Page(render(made)), "path").text
    kept |= {"corrected": 0.4321, "corrected_error": 0.0123}
    words = " ".join(section_of(Page(render(made)), "path").text.split())
    assert f"after selection : it is that of the luckiest of {len(PATH)} candidates" in words
    assert "Corrected: 0.4321 (standard error 0.0123)" in words


def test_a_policy_that_imitates_the_clinicians_says_why(found):
    made = json.loads(json.dumps(found))
    path = made["exhibits"]["paths"]["p"]
    path[2]["chosen"] = False
    path.append(path[2] | {"translation": None, "chosen": True, "clinicians": True})
    words = " ".join(section_of(Page(render(made)), "path").text.split())
    assert "Kept: as the clinicians . No candidate did better" in words


def test_the_numbers_say_for_how_long_each_was_trained(found):
    made = json.loads(json.dumps(found))
    for number, candidate in enumerate(made["exhibits"]["paths"]["p"]):
        candidate["epochs"] = 11 + number
        candidate["in_race"] = number != 1
    section = section_of(Page(render(made)), "path")
    assert "Epochs trained" in section.text
    told = {cell.text.strip() for cell in section.all("td")}
    assert {"11", "12, then dropped out", "13"} <= told
