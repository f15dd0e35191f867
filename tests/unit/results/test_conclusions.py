"""Better than the clinicians: said of a whole stay, or said to be of one decision."""

from dataclasses import replace

import pytest

from etips.results.conclusions import (
    CANNOT_TELL,
    DISAGREES,
    KINDS,
    NOT_LOOKED,
    better_words,
    compare_strength,
    conclude,
    doubt_of,
)
from etips.results.records import (
    DataSummary,
    DifferenceResult,
    FeatureStrength,
    GainResult,
    MethodResult,
    WholeStayResult,
)

ONE = DataSummary(300, 300, 3, 0, one_decision=True)
SEVERAL = DataSummary(100, 300, 3, 0)
WHOLE = WholeStayResult(
    outcome="sum",
    estimates=(),
    clinicians=None,
    gain=DifferenceResult(-1.0, 0.1, -1.2, -0.8, True),
    effective_stays=50.0,
    weight_share=1.0,
    n_corrected=3,
    longest_stay=3,
    verdict="reliable",
    reasons=(),
    sentence="",
    one_decision="",
)


def method(better, at_one, verdict="reliable", **more):
    gain = GainResult(-0.1, 0.01, -0.2, -0.05, better, 0.01, at_one)
    return MethodResult("p", (), None, verdict, (), None, gain, **more)


def test_where_a_stay_is_one_decision_better_is_better():
    assert better_words(method(True, True), ONE) == "better"
    assert better_words(method(False, False), ONE) == "no difference shown"
    assert better_words(method(True, True, "doubtful"), ONE) == "better only were it not doubtful"


def test_where_it_is_not_better_is_said_of_one_decision_until_the_stay_agrees():
    found = better_words(method(False, True), SEVERAL)
    assert found == f"better at one decision; {NOT_LOOKED}"
    found = better_words(method(False, True, whole_stay=WHOLE), SEVERAL)
    assert found == f"better at one decision; {DISAGREES}"
    assert better_words(method(True, True, whole_stay=WHOLE), SEVERAL) == "better"
    lost = replace(WHOLE, verdict="unusable")  # what it estimates neither agrees nor disagrees
    found = better_words(method(False, True, whole_stay=lost), SEVERAL)
    assert found == f"better at one decision; {CANNOT_TELL}"
    found = better_words(method(False, True, "unusable"), SEVERAL)
    assert found == "better at one decision only were it not unusable"


def test_a_doubtful_gain_over_the_stay_is_called_so():
    doubtful = method(True, True, whole_stay=replace(WHOLE, verdict="doubtful"))
    assert better_words(doubtful, SEVERAL) == "better; over the whole stay it is doubtful"
    assert doubt_of(doubtful, ONE) is None


@pytest.mark.parametrize("data", [ONE, SEVERAL])
def test_nothing_is_better_on_stays_it_learned_from(data):
    found = better_words(method(data is ONE, True, in_sample=True), data)
    assert found.endswith("on stays it learned from, which shows nothing")


def test_what_is_hidden_is_not_known():
    hidden = replace(method(True, True), gain=GainResult())
    assert better_words(hidden, ONE) == "not known to be better"


@pytest.mark.parametrize(
    ("found", "data", "kind", "words"),
    [
        (method(True, True), ONE, "better", "better"),
        (method(False, False), ONE, "none", "no difference shown"),
        (method(False, True), SEVERAL, "partly", "better at one decision"),
        (method(True, True, whole_stay=WHOLE), SEVERAL, "better", "better"),
        (
            method(True, True, whole_stay=replace(WHOLE, verdict="doubtful")),
            SEVERAL,
            "partly",
            "better, doubtful over the stay",
        ),
        (method(True, True, "doubtful"), ONE, "doubtful", "seems better, doubtful"),
        (method(False, False, "doubtful"), ONE, "doubtful", "no difference shown, doubtful"),
        (method(True, True, "unusable"), ONE, "unusable", "unusable"),
        (method(True, True, in_sample=True), ONE, "doubtful", "in sample, shows nothing"),
        (replace(method(True, True), gain=GainResult()), ONE, "unknown", "not known"),
    ],
)
def test_what_was_found_is_one_word_and_its_verdict_is_in_it(found, data, kind, words):
    conclusion = conclude(found, data)
    assert (conclusion.kind, conclusion.words) == (kind, words)
    assert kind in [own for own, _, _ in KINDS]


def test_worse_is_said_where_chance_does_not_explain_it():
    """At two standard errors the interval leaves out zero, of twenty policies often by chance."""
    higher = GainResult(0.08, 0.02, 0.04, 0.12, False, 1.0, False)
    found = replace(method(False, False), gain=higher)
    assert conclude(found, ONE).kind == "worse"
    assert better_words(found, ONE) == "worse"
    near = replace(found, gain=replace(higher, std_error=0.03, low=0.02))
    assert conclude(near, ONE).words == "no difference shown"
    assert conclude(replace(found, verdict="doubtful"), ONE).words == "seems worse, doubtful"


FEATURES = (
    FeatureStrength(("lactate",), 2.0),
    FeatureStrength(("SOFA",), 1.5),
    FeatureStrength(("lactate", "SOFA"), 2.6),
    FeatureStrength(("lactate", "SOFA", "age"), 2.9),
)


@pytest.mark.parametrize(
    ("gamma", "words"),
    [
        (1.2, "A hidden factor as strong as SOFA (odds ratio 1.50) would be enough"),
        (1.8, "A hidden factor as strong as lactate (odds ratio 2.00) would be enough"),
        (
            2.5,
            "The hidden factor would have to be as strong as lactate and SOFA together "
            "(odds ratio 2.60)",
        ),
        (
            4.0,
            "The hidden factor would have to be stronger than lactate, SOFA and age together "
            "(odds ratio 2.90)",
        ),
    ],
)
def test_a_hidden_factor_is_held_against_the_weakest_that_would_do(gamma, words):
    assert compare_strength(gamma, FEATURES) == words


def test_without_features_there_is_nothing_to_compare_with():
    assert compare_strength(2.0, ()) is None
