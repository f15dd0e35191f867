from dataclasses import replace

from etips.results.negative_control_result import NegativeControlResult

QUIET = NegativeControlResult("before", False, 0.01, -0.1, 0.12, 0.99, 2.0, False)


def test_the_sentence_says_whether_zero_is_possible():
    assert "could be" in QUIET.sentence
    loud = replace(QUIET, difference=-0.5, low=-0.8, high=-0.2, warning=True)
    assert "where no action can have caused one" in loud.sentence
    assert "0.25 standard deviations" in loud.sentence
    assert "no number" in replace(QUIET, difference=None).sentence


def test_a_feature_is_said_to_test_the_propensities_only():
    assert "not what is hidden" not in QUIET.sentence
    assert "not what is hidden" in replace(QUIET, seen=True).sentence
