"""The table of policies."""

import json

from report_documents import Page, render

from etips.evaluation.estimators import ESTIMATORS


def test_the_loss_is_told_in_the_words_of_the_data(found):
    made = json.loads(json.dumps(found))
    made["data"]["provenance"]["loss"] = "1 if dead"
    assert "in the words of the data: 1 if dead." in Page(render(made)).root.text


def test_an_effective_size_that_is_hidden_says_so(found):
    made = json.loads(json.dumps(found))
    made["methods"][1]["diagnostics"]["effective_sample_size"] = None
    assert "under 11" in Page(render(made)).root.text


def test_every_policy_measure_and_formula_is_explained(found):
    made = json.loads(json.dumps(found))
    made["tables"] = [{"title": "t", "note": None, "columns": ["a"], "rows": []}]
    made["methods"][0] |= {"sentence": "Learned so.", "label": "ThatOne"}
    made["methods"][1] |= {"sentence": "Learned otherwise."}
    meanings = {
        term.text: meaning.text
        for words in Page(render(made)).all("dl")
        if words.attributes["class"] == "words"
        for term, meaning in zip(words.all("dt"), words.all("dd"), strict=True)
    }
    assert meanings["p"] == "Learned so. In the tables below: ThatOne."
    assert meanings["q"] == "Learned otherwise."
    assert {"Verdict", "Matching factor", "Effective sample size", "SNIPS", "IPS"} <= set(meanings)
    assert meanings["SNIPS"] == ESTIMATORS["snips"].sentence
