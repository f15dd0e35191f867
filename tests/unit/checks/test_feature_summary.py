"""Features by kind, with gaps and levels, and no count that tells of few."""

from etips.checks.column_facts import ColumnFacts
from etips.checks.feature_summary import feature_names, summarize_features
from etips.data.intake.recipe import ColumnKind
from etips.data.tables.columns import TableColumns

FACTS = [
    ColumnFacts("id", 0, "number", 100, n_distinct=100, whole=True),
    ColumnFacts("age", 1, "number", 100, n_missing=4, n_distinct=60),
    ColumnFacts("lactate", 2, "number", 100, n_missing=40, n_distinct=50),
    ColumnFacts("crp", 3, "number", 100, n_missing=95, n_distinct=5),
    ColumnFacts("sex", 4, "text", 100, n_distinct=2, levels=("f", "m")),
    ColumnFacts("ward", 5, "number", 100, n_distinct=9, whole=True),
    ColumnFacts("town", 6, "text", 100, n_distinct=12, levels=tuple("abcdefghijkl")),
    ColumnFacts("note", 7, "text", 100, n_distinct=99),
]


def test_every_column_without_a_part_is_a_feature_unless_it_is_dropped():
    columns = TableColumns(stay="id", static=("age",), drop=("no*",))
    assert feature_names(FACTS, columns) == ("age", "lactate", "crp", "sex", "ward", "town")
    only = TableColumns(stay="id", static=("age",), features=("l*", "sex"))
    assert feature_names(FACTS, only) == ("age", "lactate", "sex")


def test_kinds_gaps_and_levels_are_told_and_few_are_not():
    made = {
        own.name: own
        for own in summarize_features(FACTS, TableColumns(stay="id", categorical=("ward",)))
    }
    assert made["lactate"].missing == 40
    assert made["age"].missing is None  # four people
    assert made["crp"].missing is None  # five have it
    assert made["sex"].missing == 0
    assert (made["sex"].kind, made["sex"].levels) == ("category", ("f", "m"))
    assert (made["ward"].kind, made["ward"].n_levels) == ("category", 9)
    assert made["town"].levels == ()  # twelve of a hundred rows: each may be somebody
    assert made["note"].n_levels == 99


def test_how_a_column_was_read_goes_over_how_it_looks():
    kinds = {"sex": ColumnKind("yes_no", levels=("f", "m")), "age": ColumnKind("years")}
    made = {own.name: own.kind for own in summarize_features(FACTS, TableColumns(), kinds)}
    assert (made["sex"], made["age"], made["lactate"]) == ("yes/no", "time", "number")
