"""The finding in words; names, numbers and verdicts as a page shows them."""

from dataclasses import replace

import pytest
from report_documents import Page, changed, render, section_of, words

from etips.report.finding import hidden_confounding, one_line, what_it_does
from etips.report.wording import cell, clean, count, name, number, percent, signed, span
from etips.results.parsing import parse_results
from etips.results.records import GainResult, MethodResult, SensitivityResult
from etips.results.summaries import without_figures


def test_the_finding_says_better_only_when_reliable_and_shown(found):
    made, main = changed(found)
    main["gain"] |= {"better": True, "difference": -0.1, "low": -0.2, "high": -0.05}
    main["verdict"] = "reliable"
    assert "shown to be lower" in words(made, "finding")
    assert "better at one decision" not in words(made, "finding")
    main["verdict"] = "unusable"
    said = words(made, "finding")
    assert "were the verdict not unusable" in said
    assert "do not use that number" in said
    assert "This log cannot answer" in said
    main["gain"] = dict.fromkeys(main["gain"])
    assert "cannot be said" in words(made, "finding")


def test_better_at_one_decision_is_not_said_of_the_stay(found):
    made, main = changed(found)
    gain = {"better": False, "better_at_one_decision": True, "difference": -0.1}
    main["gain"] |= gain | {"low": -0.2, "high": -0.05}
    main["verdict"] = "reliable"
    said = words(made, "finding")
    assert "decided once and all else been as logged" in said
    assert "at one decision it is shown to be lower" in said
    assert "the whole stay was not looked at (--whole-stay)" in said
    assert "A lower risk at one decision; the whole stay was not looked at" in said
    row = " ".join(section_of(Page(render(made)), "policies").text.split())
    assert "better at one decision verdict: reliable; the whole stay was not looked at" in row
    made["data"]["one_decision"] = True
    assert "all else" not in words(made, "finding")


def test_what_is_in_sample_says_so_before_any_figure(found):
    assert "In sample" not in words(found, "finding")
    said = words(changed(found, in_sample=True)[0], "finding")
    assert said.index("In sample") < said.index("the risk is estimated")
    assert "this shows nothing of others" in said


@pytest.mark.parametrize(
    ("gain", "gamma", "told"),
    [
        (-0.1, 1.5, "by a factor of 1.50"),
        (-0.1, 1.001, "Next to no hidden confounding"),
        (-0.1, None, "Even very strong"),
        (0.1, 1.0, "no gain"),
        (None, 1.0, "is not known"),
    ],
)
def test_what_it_takes_to_undo_a_gain_is_said_in_words(gain, gamma, told):
    sensitivity = SensitivityResult(gamma, gamma, ())
    method = MethodResult("p", (), None, None, (), None, GainResult(gain), None, sensitivity)
    assert told in hidden_confounding(method)
    assert "was not computed" in hidden_confounding(replace(method, sensitivity=None))


def test_the_command_line_is_told_the_policy_and_its_verdict(found):
    results = parse_results(found)
    verdict = results.methods[0].verdict
    decisions = f"{results.data.n_decisions:,}"
    line = one_line(results)
    assert line.startswith(f"p and 1 other policy on {decisions} decisions: ")
    assert line.endswith(f"verdict: {verdict}")
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
    made, main = changed(found, verdict=verdict, reasons=[])
    made["data"]["one_decision"] = True
    names = ("difference", "low", "high", "better")
    main["gain"] |= dict(zip(names, gain, strict=True)) | {"std_error": 0.01}
    main["gain"]["better_at_one_decision"] = gain[3]
    section = section_of(Page(render(made)), "finding")
    assert f"found-{kind}" in section.attributes["class"].split()
    text = " ".join(section.text.split())
    assert heading in text
    assert ("\u2713" in text) == (kind == "better")  # the tick is for a gain alone
    for told in ("Asked", "Found", "How sure", "What it does not say"):
        assert told in [e.text for e in section.all("dt")]


def test_a_null_result_is_no_proof_that_nothing_differs(found):
    made, main = changed(found)
    main["verdict"] = "reliable"
    main["gain"] |= {"difference": 0.0, "low": -0.02, "high": 0.02, "better": False}
    main["gain"]["better_at_one_decision"] = False
    assert "That they are equal: anything from \u22120.020 to +0.020" in words(made, "finding")


def test_of_a_risk_that_is_hidden_no_empty_interval_is_printed(found):
    results = parse_results(found)
    made = replace(results, methods=tuple(without_figures(own) for own in results.methods))
    told = words(made.to_json(), "finding")
    assert "is hidden or not known" in told
    assert "fewer than eleven people" in told
    assert "estimated at" not in told


NAMES = ["none", "vasopressor", "fluid"]


@pytest.fixture
def made(found):
    made, _ = changed(found)
    made["data"]["actions"] = made["exhibits"]["actions"]["names"] = list(NAMES)
    return made


def keep(made, place):
    for at, candidate in enumerate(made["exhibits"]["paths"]["p"]):
        candidate["chosen"] = at == place
    return parse_results(made)


def test_one_that_imitates_is_called_so(made):
    made["exhibits"]["paths"]["p"][3]["clinicians"] = True
    assert what_it_does(keep(made, 3), "p") == "as the clinicians"
    assert what_it_does(keep(made, 2), "p") is None
    assert what_it_does(keep(made, 2), "nobody") is None


def test_a_policy_that_always_recommends_the_same_is_a_constant_whoever_made_it(made):
    made["exhibits"]["paths"] = {}
    made["exhibits"]["actions"]["recommended_share"] = [0.0, 0.0, 1.0]
    results = parse_results(made)
    assert what_it_does(results, "p") == "always fluid"
    assert what_it_does(results, "q") is None  # what others recommend is not on record
    assert what_it_does(parse_results(made | {"exhibits": None}), "p") is None


def test_where_a_policy_is_a_constant_finding_table_and_actions_say_so(made):
    made["exhibits"]["actions"]["recommended_share"] = [0.0, 1.0, 0.0]
    for anchor in ("finding", "policies", "actions"):
        assert "always vasopressor" in words(made, anchor)
    made["exhibits"]["paths"] = {}  # one that is called by its rule is not explained by it
    made["exhibits"]["headline"] = made["methods"][0]["name"] = "always vasopressor"
    assert what_it_does(parse_results(made), "always vasopressor") is None


def test_names_are_one_line_without_marks_that_turn_text_around():
    assert clean("  two\nwords\tand\x00 \u202emore ") == "two words and more"
    assert clean("x" * 70) == "x" * 59 + "\u2026"
    assert str(name("a" * 400)).count("a") == 59 + 299


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        (number(-0.0001), "0.000"),
        (signed(0.0001), "0.000"),  # what rounds to nothing has no sign
        (signed(-0.25), "\u22120.250"),
        (signed(1.5), "+1.500"),
        (number(None), "\u2013"),
        (number(True), "\u2013"),
        (percent(0.0), "0\u00a0%"),
        (percent(0.004), "<1\u00a0%"),  # and is there all the same
        (percent(0.0004, 1), "<0.1\u00a0%"),
        (count(None), "hidden"),
        (count(1234), "1,234"),
        (span(None, 0.5), "\u2013 to 0.500"),
        (cell(0.5), "0.5000"),
        (cell(1234), "1,234"),
        (cell(None), "\u2013"),
        (cell("-"), "\u2013"),
        (cell("-0.1 ± 0.2"), "\u22120.1 ± 0.2"),
    ],
)
def test_numbers_as_a_page_shows_them(shown, wanted):
    assert shown == wanted
