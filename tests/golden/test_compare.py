"""A comparison of records that could not fail would hold nobody to anything."""

import pytest
from compare import compare

BEFORE = {"methods.etips.risk": 0.4871, "methods.etips.low": 0.4810, "n": 12, "table": "0.487"}


def test_a_record_equals_itself():
    outcome = compare(BEFORE, dict(BEFORE))
    assert outcome.holds
    assert outcome.same == len(BEFORE)


@pytest.mark.parametrize(
    ("place", "value"), [("methods.etips.risk", 0.4871001), ("n", 13), ("table", "0.488")]
)
def test_a_figure_that_differs_is_told(place, value):
    outcome = compare(BEFORE, {**BEFORE, place: value})
    assert not outcome.holds
    assert [changed for changed, _, _ in outcome.changed] == [place]


def test_a_figure_within_rounding_is_equal():
    assert compare(BEFORE, {**BEFORE, "methods.etips.risk": 0.4871 + 1e-12}).holds


def test_a_figure_may_stand_elsewhere_but_answers_for_one_only():
    moved = {key.replace("methods", "policies"): value for key, value in BEFORE.items()}
    assert compare(BEFORE, moved).moved == 2
    assert compare(BEFORE, moved).holds
    twice = {**BEFORE, "also": 0.4871}
    assert not compare(twice, moved).holds


def test_a_figure_that_is_gone_is_told():
    fewer = {place: value for place, value in BEFORE.items() if place != "n"}
    assert compare(BEFORE, fewer).lost == ["n"]


def test_swapped_figures_are_seen_as_moved_not_as_equal():
    """What a comparison by value cannot see is counted, so that a reader can look."""
    swapped = {**BEFORE, "methods.etips.risk": 0.4810, "methods.etips.low": 0.4871}
    assert compare(BEFORE, swapped).moved == 2
