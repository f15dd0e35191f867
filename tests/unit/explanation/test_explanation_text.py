"""Lines of text."""

from dataclasses import replace

from etips.data.schema import Schema
from etips.explanation.explanation_parts import ExplanationParts
from etips.explanation.explanation_text import describe, measure_words, similar_words
from etips.explanation.measure_next import Measurement
from etips.explanation.similar import Done, Neighbourhood, SimilarDecisions
from etips.explanation.stay_explanation import explain_stay

SCHEMA = Schema(sequence=("x",), n_actions=3, actions=("wait", "fluid", "drug"))


def test_similar_patients_in_a_sentence():
    own = SimilarDecisions(31, (Done(1, 0.7, 0.25, 0.2, 0.3), Done(2, None)), 0.3)
    told = similar_words(own, SCHEMA)
    assert told == "similar decisions: 31 people (effective); fluid 70%, mean loss 0.25"
    assert "under 11 people" in similar_words(SimilarDecisions(None), SCHEMA)


def test_a_measurement_in_a_few_words():
    assert measure_words(Measurement("lactate", None, 0.4, 0.2, 0.9)) == (
        "lactate (never measured) would change the answer for 40% of likely values"
    )


def test_a_stay_is_told_step_by_step(policy, log, longest):
    own = ExplanationParts(stay=explain_stay(policy, longest, Neighbourhood.of(policy, log)))
    lines = describe(own).splitlines()
    assert lines[0] == f"stay {longest.stay[0]}"
    assert sum(line.startswith("  step ") for line in lines) == longest.n_decisions
    assert describe(ExplanationParts()) == ""


def test_what_is_explained_is_named_since_a_policy_that_abstains_has_no_it(policy, log, longest):
    silent = replace(policy, support=0.999)
    said = describe(ExplanationParts(stay=explain_stay(silent, longest)))
    assert "abstains" in said
    assert " it, over " not in said
    names = [policy.schema.action_name(k) for k in range(policy.schema.n_actions)]
    assert any(f"for {name}, over " in said or f"against {name}, over " in said for name in names)
