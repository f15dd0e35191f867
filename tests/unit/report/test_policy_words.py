"""A policy in a few words, where it comes to that."""

import json

import pytest
from report_documents import Page, document, render, section_of

from etips.report.policy_words import what_it_does
from etips.results.parsing import parse_results

NAMES = ["none", "vasopressor", "fluid"]


@pytest.fixture
def made():
    made = json.loads(json.dumps(document(80)))
    made["data"]["actions"] = made["exhibits"]["actions"]["names"] = list(NAMES)
    return made


def keep(made, place):
    for number, candidate in enumerate(made["exhibits"]["paths"]["p"]):
        candidate["chosen"] = number == place
    return parse_results(made)


def test_a_constant_is_called_by_its_action(made):
    assert what_it_does(keep(made, 3), "p") == "always vasopressor"
    assert what_it_does(keep(made, 2), "p") is None
    assert what_it_does(keep(made, 2), "nobody") is None


def test_one_that_imitates_is_called_so(made):
    made["exhibits"]["paths"]["p"][3] |= {"action": None, "clinicians": True}
    assert what_it_does(keep(made, 3), "p") == "as the clinicians"


def test_a_policy_that_always_recommends_the_same_is_a_constant_whoever_made_it(made):
    made["exhibits"]["paths"] = {}
    made["exhibits"]["actions"]["recommended_share"] = [0.0, 0.0, 1.0]
    results = parse_results(made)
    assert what_it_does(results, "p") == "always fluid"
    assert what_it_does(results, "q") is None  # what others recommend is not on record
    assert what_it_does(parse_results(made | {"exhibits": None}), "p") is None


def test_where_a_constant_wins_finding_table_path_and_actions_say_so(made):
    page = Page(render(keep(made, 3).to_json()))
    for anchor in ("finding", "policies", "path", "actions"):
        assert "always vasopressor" in section_of(page, anchor).text
    assert "A constant won" in section_of(page, "path").text


def test_a_policy_that_is_called_by_its_rule_is_not_explained_by_it(made):
    made["exhibits"]["paths"] = {"always vasopressor": made["exhibits"]["paths"]["p"]}
    made["exhibits"]["headline"] = made["methods"][0]["name"] = "always vasopressor"
    for number, candidate in enumerate(made["exhibits"]["paths"]["always vasopressor"]):
        candidate["chosen"] = number == 3
    assert what_it_does(parse_results(made), "always vasopressor") is None
