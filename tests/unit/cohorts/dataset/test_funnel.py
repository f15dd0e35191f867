"""Section 18.3: what happened to the stays, in counts."""

import json
import math

import numpy as np
import polars as pl
import pytest

from etips.cohorts.dataset.funnel import (
    Funnel,
    Stage,
    count_gaps,
    missing_shares,
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


def test_shares_of_what_is_missing():
    rows = pl.DataFrame({"HR": [1.0, np.nan, np.nan, 4.0], "RR": [1.0, 2.0, 3.0, 4.0]})
    assert missing_shares(rows, ("HR", "RR")) == {"HR": 0.5, "RR": 0.0}


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
