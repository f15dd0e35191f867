"""Where the stays came from, and what was missing."""

from dataclasses import replace

import numpy as np
import pytest
from hospital_stays import logged, make_exhibits
from small_worlds import ward


def test_missing_values_are_counted_where_a_flag_or_nan_says_so(made, exhibits):
    found = exhibits["missingness"]
    gone = np.isnan(made[0].sequence[:, 1])
    assert [f["name"] for f in found["features"]] == ["lactate"]
    assert found["features"][0]["share"] == pytest.approx(gone.mean())
    assert found["n_features"] == 4  # hr, lactate, age, ward
    assert found["n_complete"] == 3


def test_a_gap_of_a_few_people_is_hidden():
    data = ward(n_stays=60, lag=0)
    sequence = np.array(data.sequence)
    sequence[:3, 2] = np.nan
    schema = replace(data.schema, indicators=("lactate",))
    few = replace(data, sequence=sequence, schema=schema)
    table = np.full((few.n_decisions, 3), 1 / 3)
    found = make_exhibits(few, logged(few), {"p": table}, headline="p")["missingness"]
    assert found["features"] == [{"name": "lactate", "share": None}]


def test_the_funnel_of_a_cohort_comes_before_the_data_and_small_steps_are_hidden(made):
    data, log, table = made
    stages = [("all stays", 900), ("adults", 893), ("with sepsis", 400)]
    cohort = {
        "stages": [{"name": name, "n_stays": count} for name, count in stages],
        "n_rows": 1000,
        "missing_share": {"SOFA": 0.25, "rare": 0.004, "whole": 0.0},
    }
    found = make_exhibits(data, log, {"p": table}, headline="p", cohort=cohort)
    assert [(s["name"], s["count"]) for s in found["flow"]["stages"]] == [
        ("all stays", 900),
        ("adults", None),
        ("with sepsis", 400),
        ("stays in the evaluated data", 240),
        ("stays with a decision", 240),
    ]
    shares = {f["name"]: f["share"] for f in found["missingness"]["features"]}
    assert shares == {"SOFA": 0.25, "rare": None}
    assert found["flow"]["source"] == "cohort"
