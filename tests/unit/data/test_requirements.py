"""What the arrays of Trajectories must satisfy: bad ones are refused by place, rule and row."""

from dataclasses import replace

import numpy as np
import pytest
from random_cohorts import Cohort, with_truth
from stored_stays import coded_data

from etips.data import Coded, Schema, Trajectories
from etips.errors import DataError, EtipsError

BIG = Cohort(seed=5, n_stays=30, longest=6, eligible=True)


def change(**parts):
    return lambda data: replace(data, **{name: make(data) for name, make in parts.items()})


def poke(name, place, value):
    def make(data):
        values = getattr(data, name).astype(float if name in ("action", "loss") else None)
        values[place] = value
        return values

    return {name: make}


BAD = {
    "offsets fall": (
        change(offsets=lambda d: d.offsets[::-1].copy()),
        r"^offsets: must start at 0 and rise: every stay has at least one step\.$",
    ),
    "offsets empty": (change(offsets=lambda d: np.zeros(0, int)), r"^offsets: must start at 0"),
    "offsets not whole": (change(offsets=lambda d: d.offsets * 1.0), r"^offsets: must start at 0"),
    "a stay without steps": (
        change(offsets=lambda d: np.concatenate([[0], d.offsets])),
        r"^offsets: must start at 0",
    ),
    "action without loss": (
        change(loss=lambda d: None),
        r"^action, loss: must be given together or not at all\.$",
    ),
    "short loss": (
        change(loss=lambda d: d.loss[1:]),
        r"^loss: must have shape \(\d+,\), has \(\d+,\)\.$",
    ),
    "one feature too few": (
        change(sequence=lambda d: d.sequence[:, 1:]),
        r"^sequence: must have shape \(\d+, 2\), has \(\d+, 1\)\.$",
    ),
    "float64 features": (
        change(sequence=lambda d: d.sequence.astype(float)),
        r"^sequence: must be float32\.$",
    ),
    "infinite feature": (
        change(sequence=lambda d: np.where(np.arange(d.n_steps)[:, None] == 3, np.inf, d.sequence)),
        r"^sequence, feature vital0: must be finite; 1 of \d+ rows fail, first at row 3\.$",
    ),
    "missing static": (
        change(static=lambda d: np.full_like(d.static, np.nan)),
        r"^static, feature fixed0: must be finite; 30 of 30 rows fail, first at row 0\.$",
    ),
    "action too large": (
        change(action=lambda d: np.where(np.arange(d.n_steps) == 4, 3, d.action)),
        r"^action: must be whole, 0\.\.2, or -1 where there is none; 1 of \d+ rows fail, first at "
        r"row 4\.$",
    ),
    "action not whole": (
        change(action=lambda d: d.action + 0.5),
        r"^action: must be whole, 0\.\.2, or -1 where there is none; \d+ of \d+ rows fail",
    ),
    "infinite loss": (
        change(**poke("loss", 2, -np.inf)),
        r"^loss: must be finite, or NaN where it is not known; 1 of \d+ rows fail, first at row 2",
    ),
    "propensity zero": (
        change(propensity=lambda d: d.propensity * 0),
        r"^propensity: must be in \(0, 1\] at every decision; \d+ of \d+ rows fail",
    ),
    "propensity not known": (
        change(propensity=lambda d: np.full(d.n_steps, np.nan)),
        r"^propensity: must be in \(0, 1\] at every decision; \d+ of \d+ rows fail",
    ),
    "steps fall": (
        change(step=lambda d: -d.step),
        r"^step: must rise within a stay; \d+ of \d+ rows fail, first at row \d+\.$",
    ),
    "truth of another width": (
        change(truth=lambda d: replace(d.truth, logging=d.truth.logging[:, 1:])),
        r"^truth: its tables must have one row a code and one column an action\.$",
    ),
    "truth beyond its table": (
        change(truth=lambda d: replace(d.truth, code=d.truth.code + 99)),
        r"^truth: codes must be in 0\.\.6; \d+ of \d+ rows fail, first at row 0\.$",
    ),
}


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("case", BAD)
def test_bad_arrays_are_refused_by_place_rule_and_row(case):
    make, message = BAD[case]
    with pytest.raises(DataError, match=message):
        make(with_truth(BIG.make()))


def test_codes_that_do_not_point_into_the_table_are_refused():
    data = coded_data()
    for wrong in (-1, 3):
        code = data.sequence.code.copy()
        code[5] = wrong
        message = r"^sequence: codes must be in 0\.\.2; 1 of 6 rows fail, first at row 5\.$"
        with pytest.raises(DataError, match=message):
            replace(data, sequence=Coded(data.sequence.table, code))


def test_an_infinite_row_of_a_coded_table_is_refused():
    data = coded_data()
    table = data.sequence.table.copy()
    table[1, 1] = np.inf
    with pytest.raises(DataError, match=r"^sequence, feature b: must be finite; 1 of 3 rows fail"):
        replace(data, sequence=Coded(table, data.sequence.code))


def test_a_value_far_down_is_found_and_counted_from_the_top():
    values = np.zeros((70_000, 1), np.float32)
    values[66_000:66_002] = np.nan
    message = r"^sequence, feature x: must be finite; 2 of 70000 rows fail, first at row 66000\.$"
    with pytest.raises(DataError, match=message):
        Trajectories(values, np.array([0, 70_000]), Schema(sequence=("x",), n_actions=1))


def test_missing_values_pass_only_where_the_schema_says_so():
    schema = Schema(
        sequence=("x", "ward=icu", "y"),
        n_actions=1,
        indicators=("x", "ward"),
        categories={"ward": ("icu",)},
    )
    good = np.array([[np.nan, np.nan, 1.0]], np.float32)
    Trajectories(good, np.array([0, 1]), schema)
    for bad in ([[1, 1, np.nan]], [[np.inf, 1, 1]]):
        with pytest.raises(EtipsError, match=r"^sequence, feature [xy]: must be finite; 1 of 1"):
            Trajectories(np.array(bad, np.float32), np.array([0, 1]), schema)
