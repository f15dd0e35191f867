"""The funnel as a drawing, and what it must not tell."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etips.cohorts.mimic3.flow import draw_funnel, shown_counts
from etips.cohorts.mimic3.funnel import Stage


def shown(*counts):
    return shown_counts([Stage("a step", count) for count in counts])


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((500, 300, 100), [500, 300, 100]),
        ((500, 495, 100), [500, None, 100]),
        ((500, 108, 100), [500, None, 100]),
        ((500, 100, 100), [500, 100, 100]),
        ((500, 100, 7), [500, 100, None]),
        ((105, 105, 100), [None, None, 100]),
        ((500, 111, 100), [500, 111, 100]),
        ((500, 20, 0), [500, 20, 0]),
    ],
)
def test_neither_a_small_count_nor_a_small_difference_is_shown(counts, expected):
    assert shown(*counts) == expected


@given(st.lists(st.integers(0, 60), min_size=1, max_size=12))
def test_no_two_counts_that_are_shown_tell_of_few(counts):
    told = [count for count in shown(*counts) if count is not None]
    assert not any(0 < count < 11 for count in told)
    assert not any(0 < abs(one - other) < 11 for one in told for other in told)


def texts(svg):
    return [e.text for e in ET.fromstring(svg).iter() if e.tag.endswith("}text") and e.text]


def test_every_step_has_a_box_and_the_drawing_is_well_formed(paper_cohort):
    funnel = paper_cohort.funnel
    words = texts(draw_funnel(funnel))
    for stage in funnel.stages:
        assert stage.name in words
    assert f"{funnel.n_rows:,} rows" in words
    assert f"{funnel.stages[-1].n_stays} stays" in words


def test_names_are_escaped(paper_cohort):
    odd = replace(paper_cohort.funnel, stages=(Stage("a <b> & 'c' \"d\"", 900),), profile="<x>")
    drawn = draw_funnel(odd)
    assert "a <b> & 'c' \"d\"" in texts(drawn)
    assert "<b>" not in drawn


def test_the_drawing_follows_the_reader_s_light_or_dark_page(paper_cohort):
    drawn = draw_funnel(paper_cohort.funnel)
    assert "prefers-color-scheme:dark" in drawn
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")
