"""Decisions by place or year."""

import numpy as np
import pyarrow as pa
import pytest

from etips.data.tables.arrays import from_arrays
from etips.data.tables.reading import read_table
from etips.errors import DataError, SettingError
from etips.evaluation.log import Log
from etips.results.decision_groups import (
    column_values,
    group_decisions,
    pool_few,
    source_features,
)
from etips.results.subgrouping import Grouping


@pytest.fixture
def data():
    log = pa.table(
        {
            "stay": [1, 1, 1, 2, 2, 3],
            "t": pa.array(
                ["2019-12-30", "2019-12-31", "2020-01-01", "2021-03-01", "2021-03-02", "2020-06-01"]
            ).cast(pa.timestamp("s")),
            "dose": [0, 1, 0, 1, 0, 1],
            "loss": [0.0, 1.0, 0.0, 1.0, 0.0, 1.0],
            "map": [60.5, 61.0, 62.0, 63.0, 64.0, 70.0],
            "site": ["b", "b", "b", "a", "a", "b"],
        }
    )
    roles = {"stay": "stay", "step": "t", "action": "dose", "loss": "loss", "lag": 0}
    return read_table(log, **roles, static=["site"], categorical=["site"])


def test_a_column_of_text_is_places_in_order(data):
    grouping = group_decisions(data, "site")
    assert grouping.labels == ("a", "b")
    assert grouping.place.tolist() == [1, 1, 1, 0, 0, 1]


def test_a_time_is_cut_into_years(data):
    grouping = group_decisions(data, "t")
    assert grouping.labels == ("2019", "2020", "2021")
    assert grouping.name == "t"
    assert grouping.place.tolist() == [0, 0, 1, 2, 2, 1]


def test_values_may_be_given_by_decision_or_by_stay_and_named(data):
    assert group_decisions(data, ["x", "y", "x"]).place.tolist() == [0, 0, 0, 1, 1, 0]
    named = group_decisions(data, {"ward": np.array([1, 2, 1, 2, 1, 2])})
    assert (named.name, named.labels) == ("ward", ("1", "2"))


def test_what_is_missing_is_a_place_of_its_own(data):
    grouping = group_decisions(data, ["x", None, "y"])
    assert grouping.labels == ("x", "y", "missing")


def test_numbers_of_many_kinds_become_bands():
    n = 200
    data = from_arrays(np.arange(n)[:, None] / 7, action=np.arange(n) % 2, loss=np.zeros(n))
    grouping = group_decisions(data, "x0")
    assert 3 <= len(grouping.labels) <= 5
    assert not grouping.telling
    years = group_decisions(data, np.repeat(np.arange(2001, 2021), 10))
    assert len(years.labels) == 20


def test_an_unknown_column_an_identifier_and_one_place_are_refused(data):
    with pytest.raises(DataError, match=r"by, column sit: is not in the data\. There is site"):
        group_decisions(data, "sit")
    with pytest.raises(DataError, match="2 to 40 places, not 1"):
        group_decisions(data, ["x"] * 6)
    many = from_arrays(np.zeros((50, 1)), action=np.arange(50) % 2, loss=np.zeros(50))
    with pytest.raises(DataError, match="not 50"):
        group_decisions(many, [f"patient {i}" for i in range(50)])
    with pytest.raises(DataError, match="one value for each decision"):
        group_decisions(data, ["x", "y"])
    with pytest.raises(SettingError, match="one column"):
        group_decisions(data, {"a": [1] * 6, "b": [2] * 6})


def test_places_of_few_people_are_put_together_and_with_the_smallest_other():
    place = np.repeat([0, 1, 2], [300, 204, 5])
    log = Log(loss=np.linspace(0, 2, 509), action=np.arange(509) % 2, propensity=np.full(509, 0.5),
              cluster=np.arange(509), n_actions=2)  # fmt: skip
    both = pool_few(Grouping("site", ("a", "b", "c"), place, telling=True), log)
    assert both.labels == ("a", "b and others")
    assert np.bincount(both.place).tolist() == [300, 209]
    many = np.repeat([0, 1, 2, 3], [300, 189, 10, 10])
    apart = pool_few(Grouping("site", ("a", "b", "c", "d"), many, telling=True), log)
    assert apart.labels == ("a", "b", "other places")
    enough = Grouping("site", ("a", "b"), np.minimum(place, 1), telling=True)
    assert pool_few(enough, log) is enough


def test_what_tells_the_place_is_no_case_mix(data):
    sequence, static = source_features(data, "site")
    assert [data.schema.sequence[i] for i in sequence] == ["map"]
    assert static == []
    assert column_values(data, "map").tolist()[0] == 60.5
