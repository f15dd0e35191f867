"""Subgroups, places and years."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hospital_stays import hospital, leaning, logged, make_exhibits, rows_of

from etips.data.tables.arrays import from_arrays
from etips.data.tables.reading import read_table
from etips.errors import DataError, SettingError
from etips.evaluation.log import Log
from etips.results.data_summary import summarize_data
from etips.results.groupings import (
    WITHHELD,
    Grouping,
    column_values,
    group_decisions,
    hide_levels,
    pool_few,
    round_edges,
    source_features,
)


def test_subgroups_are_categories_bands_and_time_and_none_of_a_few(exhibits):
    tables = {table["feature"]: table["rows"] for table in exhibits["subgroups"]}
    assert set(tables) == {"ward", "age", "step of the stay"}
    hidden = [row for row in tables["ward"] if row["n_people"] is None]
    assert [row["level"] for row in hidden] == [WITHHELD, WITHHELD]
    assert all(value is None for row in hidden for key, value in row.items() if key != "level")
    assert sum(row["n_people"] for row in tables["age"]) == 240
    assert all(row["verdict"] for row in tables["age"])
    for row in tables["age"]:
        assert row["gain"] == pytest.approx(row["risk"] - row["logged_risk"])
    assert "SECRET" not in json.dumps(exhibits)


def test_an_age_in_days_is_shown_in_years():
    data = hospital(120, rare=0)
    static = np.array(data.static)
    static[:, 0] *= 365.25
    days = replace(data, static=static)
    found = make_exhibits(days, logged(days), {"p": leaning(days)}, headline="p")
    levels = [row["level"] for row in rows_of(found, "age in years")]
    assert levels == [r["level"] for r in rows_of(make_exhibits(
        data, logged(data), {"p": leaning(data)}, headline="p"), "age")]  # fmt: skip


def test_stays_that_end_early_are_not_counted_by_subtraction():
    data = hospital(60, rare=0)
    keep = np.ones(data.n_steps, bool)
    keep[[5, 8]] = False  # the last steps of two stays are no decisions
    few = replace(data, eligible=keep)
    found = make_exhibits(few, logged(few), {"p": leaning(few)}, headline="p")
    shown = [row["n_people"] for row in rows_of(found, "step of the stay")]
    assert [row for row in shown if row is not None] in ([], [60])
    one = replace(data, eligible=np.arange(data.n_steps) >= 3)  # a stay without any decision
    stages = make_exhibits(one, logged(one), {"p": leaning(one)}, headline="p")["flow"]["stages"]
    assert [stage["count"] for stage in stages] == [None, 59]  # subgroups add up to 59
    assert summarize_data(one).n_stays is None


def test_edges_of_bands_are_round_and_no_ones_own_value():
    values = np.random.default_rng(0).normal(61.234567, 15, 500)
    edges = round_edges(values)
    assert edges == [50.0, 60.0, 70.0]
    assert not np.isin(edges, values).any()
    assert round_edges(np.full(50, 3.0)) == []


def wards(a, b, both, nowhere=0):
    """People of ward a alone, of ward b alone, of both, and of a third ward alone."""
    visits = [(p, 0) for p in range(a)] + [(a + p, 1) for p in range(b)]
    visits += [(a + b + p, ward) for p in range(both) for ward in (0, 1)]
    visits += [(a + b + both + p, 2) for p in range(nowhere)]
    person, place = np.array(visits).T
    n = len(person)
    log = Log(loss=np.linspace(0, 2, n), action=np.arange(n) % 2, propensity=np.full(n, 0.5),
              cluster=person, n_actions=2)  # fmt: skip
    names = ("a", "b", "c") if nowhere else ("a", "b")
    return hide_levels(Grouping("ward", names, place, telling=True), log, nested=False)


def test_wards_of_nearly_the_same_size_are_shown_but_not_if_few_were_in_both_or_in_none_but_one():
    people, hidden = wards(80, 77, 30)
    assert people == [110, 107]
    assert not hidden.any()
    assert wards(80, 77, 4)[1].all()  # 84 + 81 - 161
    assert wards(80, 5, 30)[1].any()  # all but five were in ward a
    assert not wards(80, 77, 30, nowhere=50)[1].any()


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
