"""Subgroups: bands, levels, time; none of a few people."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hospital_stays import hospital, leaning, logged, make_exhibits, rows_of

from etips.evaluation.log import Log
from etips.results.subgrouping import WITHHELD, Grouping, hide_levels, round_edges
from etips.results.summaries import summarize_data


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
