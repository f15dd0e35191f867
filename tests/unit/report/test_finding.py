"""The finding in words."""

import json
from dataclasses import replace

import pytest
from report_documents import Page, render, section_of

from etips.report.finding import hidden_confounding, one_line
from etips.results.parsing import parse_results
from etips.results.results import GainResult, MethodResult, SensitivityResult
from etips.results.summaries import without_figures


def test_the_finding_says_better_only_when_reliable_and_shown(found):
    changed = json.loads(json.dumps(found))
    main = changed["methods"][0]
    main["gain"] |= {"better": True, "difference": -0.1, "low": -0.2, "high": -0.05}
    main["verdict"] = "reliable"
    assert "shown to be lower" in finding_of(changed)
    assert "better at one decision" not in finding_of(changed)
    main["verdict"] = "unusable"
    said = finding_of(changed)
    assert "were the verdict not unusable" in said
    assert "do not use that number" in said
    assert "This log cannot answer" in said
    main["gain"] = dict.fromkeys(main["gain"])
    assert "cannot be said" in finding_of(changed)


def test_better_at_one_decision_is_not_said_of_the_stay(found):
    changed = json.loads(json.dumps(found))
    main = changed["methods"][0]
    gain = {"better": False, "better_at_one_decision": True, "difference": -0.1}
    main["gain"] |= gain | {"low": -0.2, "high": -0.05}
    main["verdict"] = "reliable"
    said = finding_of(changed)
    assert "decided once and all else been as logged" in said
    assert "at one decision it is shown to be lower" in said
    assert "the whole stay was not looked at (--whole-stay)" in said
    assert "A lower risk at one decision; the whole stay was not looked at" in said
    row = " ".join(section_of(Page(render(changed)), "policies").text.split())
    assert "better at one decision verdict: reliable; the whole stay was not looked at" in row
    changed["data"]["one_decision"] = True
    assert "all else" not in finding_of(changed)


def test_what_is_in_sample_says_so_before_any_figure(found):
    changed = json.loads(json.dumps(found))
    assert "In sample" not in finding_of(changed)
    changed["methods"][0]["in_sample"] = True
    said = finding_of(changed)
    assert said.index("In sample") < said.index("the risk is estimated")
    assert "this shows nothing of others" in said


def finding_of(made):
    section = section_of(Page(render(made)), "finding")
    return " ".join(section.text.split())


@pytest.mark.parametrize(
    ("gain", "gamma", "words"),
    [
        (-0.1, 1.5, "by a factor of 1.50"),
        (-0.1, 1.001, "Next to no hidden confounding"),
        (-0.1, None, "Even very strong"),
        (0.1, 1.0, "no gain"),
        (None, 1.0, "is not known"),
    ],
)
def test_what_it_takes_to_undo_a_gain_is_said_in_words(gain, gamma, words):
    sensitivity = SensitivityResult(gamma, gamma, ())
    method = MethodResult("p", (), None, None, (), None, GainResult(gain), None, sensitivity)
    assert words in hidden_confounding(method)
    assert "was not computed" in hidden_confounding(replace(method, sensitivity=None))


def test_the_command_line_is_told_the_policy_and_its_verdict(found):
    results = parse_results(found)
    verdict = results.methods[0].verdict
    decisions = f"{results.data.n_decisions:,}"
    words = one_line(results)
    assert words.startswith(f"p and 1 other policy on {decisions} decisions: ")
    assert words.endswith(f"verdict: {verdict}")
    assert one_line(replace(results, methods=())) == "no policy"


@pytest.mark.parametrize(
    ("verdict", "gain", "kind", "heading"),
    [
        ("reliable", (-0.01, -0.05, 0.03, False), "none", "No difference shown"),
        ("reliable", (-0.1, -0.2, -0.05, True), "better", "A lower risk than under"),
        ("reliable", (0.1, 0.05, 0.2, False), "worse", "A higher risk than under"),
        ("doubtful", (-0.1, -0.2, -0.05, True), "doubtful", "A question, not an answer"),
        ("unusable", (-0.1, -0.2, -0.05, True), "unusable", "This log cannot answer"),
    ],
)
def test_the_colour_is_that_of_finding_and_verdict(found, verdict, gain, kind, heading):
    changed = json.loads(json.dumps(found))
    changed["data"]["one_decision"] = True
    main = changed["methods"][0]
    names = ("difference", "low", "high", "better")
    main |= {"verdict": verdict, "reasons": []}
    main["gain"] |= dict(zip(names, gain, strict=True)) | {"std_error": 0.01}
    main["gain"]["better_at_one_decision"] = gain[3]
    section = section_of(Page(render(changed)), "finding")
    assert f"found-{kind}" in section.attributes["class"].split()
    text = " ".join(section.text.split())
    assert heading in text
    assert ("\u2713" in text) == (kind == "better")  # the tick is for a gain alone
    for words in ("Asked", "Found", "How sure", "What it does not say"):
        assert words in [e.text for e in section.all("dt")]


def test_a_null_result_is_no_proof_that_nothing_differs(found):
    changed = json.loads(json.dumps(found))
    main = changed["methods"][0]
    main["verdict"] = "reliable"
    main["gain"] |= {"difference": 0.0, "low": -0.02, "high": 0.02, "better": False}
    main["gain"]["better_at_one_decision"] = False
    assert "That they are equal: anything from \u22120.020 to +0.020" in finding_of(changed)


def test_of_a_risk_that_is_hidden_no_empty_interval_is_printed(found):
    results = parse_results(found)
    made = replace(results, methods=tuple(without_figures(own) for own in results.methods))
    words = finding_of(made.to_json())
    assert "is hidden or not known" in words
    assert "fewer than eleven people" in words
    assert "estimated at" not in words
