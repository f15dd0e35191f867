"""Balance on the page."""

import json

from report_documents import Page, render, section_of


def test_the_largest_differences_are_drawn_and_all_are_counted(found, page):
    section = section_of(page, "balance")
    balance = found["exhibits"]["balance"]
    assert f"of {balance['n_features']} features" in section.text
    assert len(list(section.all("svg"))) == 1


def test_balance_that_cannot_be_shown_says_why(found):
    made = json.loads(json.dumps(found))
    made["exhibits"]["balance"] = {"absent": "there is no feature to compare"}
    assert "because there is no feature" in section_of(Page(render(made)), "balance").text
    made["exhibits"] = None
    made["methods"][0]["prognosis"] = None
    assert 'id="balance"' not in render(made)


def test_what_balancing_did_is_told(found):
    made = json.loads(json.dumps(found))
    balance = made["exhibits"]["balance"]
    balance["n_above_fitted"] = 7
    for feature in balance["features"]:
        feature["fitted"] = 0.2
    words = "balanced: imbalance of the prognosis 0.041 before, 0.004 after"
    made["methods"][0]["notes"] = {"balance": words}
    text = section_of(Page(render(made)), "balance").text
    assert "7 would with the propensities as fitted" in text
    assert f"The propensities were {words}." in text


def test_the_prognosis_is_told_in_words_above_the_features(found):
    made = json.loads(json.dumps(found))
    told = "The weighted patients had a prognosis 0.050 better than all patients"
    made["methods"][0]["prognosis"] = {"difference": -0.05, "std_error": 0.01, "sentence": told}
    text = section_of(Page(render(made)), "balance").text
    assert told in text
    assert "off by about 0.020" in text
    assert text.index(told) < text.index("features")
    made["exhibits"]["balance"] = {"absent": "there is no feature to compare"}
    assert told in section_of(Page(render(made)), "balance").text
