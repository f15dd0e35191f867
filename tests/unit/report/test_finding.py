"""The finding in words."""

import json
from dataclasses import replace

import pytest
from report_documents import Page, render, section_of

from etips.report.finding import hidden_confounding, one_line
from etips.results.parsing import parse_results
from etips.results.results import GainResult, MethodResult, SensitivityResult


def test_the_finding_says_better_only_when_reliable_and_shown(found):
    changed = json.loads(json.dumps(found))
    main = changed["methods"][0]
    main["gain"] |= {"better": True, "difference": -0.1, "low": -0.2, "high": -0.05}
    main["verdict"] = "reliable"
    assert "shown to be lower" in finding_of(changed)
    assert "yes, but" not in Page(render(changed)).root.text
    main["verdict"] = "unusable"
    said = finding_of(changed)
    assert "were the verdict not unusable" in said
    assert "do not use that number" in said
    assert "yes, but unusable" in Page(render(changed)).root.text
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
    text = " ".join(Page(render(changed)).root.text.split())
    assert "at one decision; the whole stay was not looked at" in text
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
    assert one_line(results) == f"p and 1 other policy on {decisions} decisions; verdict: {verdict}"
    assert one_line(replace(results, methods=())) == "no policy"
