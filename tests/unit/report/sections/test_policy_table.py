"""The table of policies."""

import json

from report_documents import Page, render, section_of

from etips.evaluation.estimators import ESTIMATORS


def test_the_loss_is_told_in_the_words_of_the_data(found):
    made = json.loads(json.dumps(found))
    made["data"]["provenance"]["loss"] = "1 if dead"
    made["data"]["loss"] = None
    assert "in the words of the data: 1 if dead;" in Page(render(made)).root.text
    made["data"]["loss"] = "The loss is column died as it stands."
    assert "The loss is column died as it stands." in Page(render(made)).root.text


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
    assert meanings["p"] == "Learned so. The paper calls it ThatOne."
    assert meanings["q"] == "Learned otherwise."
    assert {"Verdict", "Matching factor", "Effective sample size", "SNIPS", "IPS"} <= set(meanings)
    assert meanings["SNIPS"] == ESTIMATORS["snips"].sentence


def test_a_legend_explains_the_colours_that_are_used(found):
    made = json.loads(json.dumps(found))
    made["methods"][1]["verdict"] = "unusable"
    section = section_of(Page(render(made)), "policies")
    (legend,) = [e for e in section.all("dl") if e.attributes["class"] == "legend"]
    terms = [e.attributes["class"] for e in legend.all("span") if e.attributes.get("class")]
    used = [e.attributes.get("class", "") for t in section.all("tbody") for e in t.all("span")]
    assert "badge found-unusable" in terms
    assert set(terms) == {look for look in used if "found-" in look}
    assert "The log cannot tell" in legend.text
