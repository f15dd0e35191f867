"""Subgroups on the page."""

import json

from report_documents import Page, render, section_of


def test_a_hidden_group_says_so_and_draws_nothing(found):
    made = json.loads(json.dumps(found))
    row = made["exhibits"]["subgroups"][0]["rows"][0]
    row.update({name: None for name in row if name != "level"})
    section = section_of(Page(render(made)), "subgroups")
    first = next(r for r in section.all("tr") if r.parent.tag == "tbody")
    assert "hidden: too few people" in first.text
    assert not list(first.all("svg"))


def test_a_gain_is_drawn_in_every_row_that_has_one(found, page):
    rows = [row for table in found["exhibits"]["subgroups"] for row in table["rows"]]
    drawn = list(section_of(page, "subgroups").all("svg"))
    assert len(drawn) == sum(row["gain"] is not None for row in rows)


def test_a_table_of_one_group_repeats_the_finding_and_is_left_out(found):
    made = json.loads(json.dumps(found))
    table = made["exhibits"]["subgroups"][0]
    whole = table["rows"][0] | {"level": "all decisions"}
    made["exhibits"]["subgroups"] = [{"feature": "all", "rows": [whole]}]
    assert 'id="subgroups"' not in render(made)
