"""Columns that a policy had better not see."""

import pytest

from etips.checks.column_facts import ColumnFacts
from etips.checks.suspicion import find_suspects
from etips.data.tables.columns import TableColumns


def suspect(name, shape="number", **more):
    own = ColumnFacts(name, 0, shape, 1000, **{"n_distinct": 500, **more})
    found = find_suspects([own], [own], TableColumns(), one_row=False)
    return found[0] if found else None


@pytest.mark.parametrize(
    "name", ["death_90d", "DEAD1", "hospital_expire_flag", "alive_at_28", "los", "discharge_date"]
)
def test_what_is_only_known_later_is_left_out(name):
    assert suspect(name, n_distinct=2).leave_out


@pytest.mark.parametrize("name", ["age", "weight_loss", "heart_failure", "readmission", "sofa"])
def test_what_is_known_before_is_no_suspect(name):
    assert suspect(name, n_distinct=2) is None


def test_identifiers_and_free_text_are_left_out():
    assert suspect("note", "text", n_distinct=900).leave_out
    assert suspect("patient_id", whole=True, n_distinct=400).leave_out
    assert suspect("index", whole=True, n_distinct=1000).leave_out
    assert suspect("lactate", n_distinct=1000) is None


def test_many_levels_and_codes_are_asked_about():
    assert "--categorical" in suspect("diagnosis", "text", n_distinct=80).reason
    codes = suspect("ward", whole=True, n_distinct=12)
    assert "--categorical" in codes.reason
    assert not codes.leave_out
    assert suspect("ward", "text", n_distinct=12) is None


def test_what_somebody_called_a_category_is_one():
    own = ColumnFacts("diagnosis", 0, "text", 1000, n_distinct=80)
    said = TableColumns(categorical=("diagnosis",))
    assert find_suspects([own], [own], said, one_row=True) == ()


def test_a_column_with_a_part_is_no_suspect_but_a_static_one_may_be():
    own = ColumnFacts("died", 0, "number", 100, n_distinct=2)
    assert find_suspects([own], [], TableColumns(loss="died"), one_row=True) == ()
    static = TableColumns(static=("died",))
    assert [s.column for s in find_suspects([own], [], static, one_row=True)] == ["died"]
