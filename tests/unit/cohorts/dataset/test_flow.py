"""The funnel as a drawing, and what it must not tell."""

import xml.etree.ElementTree as ET
from dataclasses import replace

from etips.cohorts.dataset.flow import draw_funnel
from etips.cohorts.dataset.funnel import Stage


def texts(svg):
    return [e.text for e in ET.fromstring(svg).iter() if e.tag.endswith("}text") and e.text]


def test_every_step_has_a_box_and_the_drawing_is_well_formed(paper_cohort):
    funnel = paper_cohort.funnel
    words = texts(draw_funnel(funnel))
    for stage in funnel.stages:
        assert stage.name in words
    assert f"{funnel.n_rows:,} rows" in words
    assert f"{funnel.stages[-1].n_stays} stays" in words


def test_neither_a_small_count_nor_one_that_tells_it_is_drawn(paper_cohort):
    stages = tuple(Stage(f"step {n}", n) for n in (500, 495, 100, 7))
    words = texts(draw_funnel(replace(paper_cohort.funnel, stages=stages)))
    assert [word for word in words if word.endswith((" stays", "not shown"))] == [
        "500 stays", "not shown", "100 stays", "not shown",
    ]  # fmt: skip


def test_names_are_escaped(paper_cohort):
    odd = replace(paper_cohort.funnel, stages=(Stage("a <b> & 'c' \"d\"", 900),), profile="<x>")
    drawn = draw_funnel(odd)
    assert "a <b> & 'c' \"d\"" in texts(drawn)
    assert "<b>" not in drawn


def test_the_drawing_follows_the_reader_s_light_or_dark_page(paper_cohort):
    drawn = draw_funnel(paper_cohort.funnel)
    assert "prefers-color-scheme:dark" in drawn
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")
