"""Section 18.3: what happened to the stays, counted and drawn, and what must not be told."""

import json
import math
import xml.etree.ElementTree as ET
from dataclasses import replace

import polars as pl
import pytest

from etips.cohorts.dataset.funnel import (
    Funnel,
    Stage,
    count_gaps,
    draw_funnel,
    require_stays,
)
from etips.errors import DataError


def test_a_step_that_leaves_nobody_is_refused_by_its_name():
    stages = [Stage("ICU stays", 60), Stage("adult", 0)]
    require_stays(stages[:1])
    with pytest.raises(DataError, match=r"none is left at: adult \(before it: 60\)"):
        require_stays(stages)
    with pytest.raises(DataError, match=r"none is left at: adult\."):
        require_stays(stages[1:])


def test_gaps_are_counted_within_stays_and_those_after_the_first_row_apart():
    table = pl.DataFrame({"icustayid": [1, 1, 1, 2, 2, 3], "bloc": [1, 3, 6, 2, 3, 9]})
    assert count_gaps(table) == (2, 1)


def test_a_funnel_comes_back_from_its_file(paper_cohort):
    content = json.loads(paper_cohort.files()["funnel.json"])
    found = Funnel.from_json(content)
    assert found.shown == paper_cohort.funnel.shown
    assert found.history == paper_cohort.funnel.history
    assert math.isnan(Funnel.from_json({**content, "mean_loss": None}).mean_loss)


def test_its_file_hides_what_the_drawing_hides():
    stages = (Stage("all", 200), Stage("adult", 195), Stage("kept", 100))
    funnel = Funnel(
        profile="paper",
        antibiotic_order="x",
        stages=stages,
        n_rows=900,
        n_single_row_stays=4,
        n_gaps=30,
        n_gaps_after_first_row=25,
        n_samples={"A": 700, "B": 703, "C": 800},
        history=(1, 5.0, 20),
        mean_loss=0.005,
        action_counts=(880, 12, 8),
        missing_share={"HR": 0.005, "RR": 0.5},
    )
    told = funnel.to_document()
    assert [stage["n_stays"] for stage in told["stages"]] == [200, None, 100]
    assert (told["n_rows"], told["n_single_row_stays"], told["n_gaps"]) == (900, None, 30)
    assert told["n_gaps_after_first_row"] is None
    assert told["n_samples"] == {"A": 700, "B": None, "C": 800}
    assert (told["mean_loss"], told["missing_share"]) == (None, {"HR": None, "RR": 0.5})
    assert told["action_counts"] == [880, None, None]
    again = Funnel.from_json(json.loads(json.dumps(told)))
    assert again.shown == funnel.shown


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


def test_the_drawing_follows_the_reader_s_light_or_dark_page(paper_cohort):
    drawn = draw_funnel(paper_cohort.funnel)
    assert "prefers-color-scheme:dark" in drawn
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")
