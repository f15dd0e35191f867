"""Section 3: which tables and columns are needed, and what tells MIMIC-III."""

import contextlib

import pytest

from etips.cohorts.databases import open_source
from etips.cohorts.mimic3.switches import CLEAN, PAPER
from etips.cohorts.mimic3.tables import LAYOUT, is_mimic3, needed, open_tables, readable
from etips.errors import DataError


def test_clean_needs_what_its_corrections_look_at():
    paper, clean = needed(PAPER.reading), needed(CLEAN.reading)
    assert set(clean) - set(paper) == {"procedureevents_mv"}
    assert set(clean["prescriptions"]) - set(paper["prescriptions"]) == {
        "drug", "route", "drug_type",
    }  # fmt: skip
    assert set(clean["chartevents"]) - set(paper["chartevents"]) == {"error"}
    assert set(clean["labevents"]) - set(paper["labevents"]) == {"value"}


def test_units_are_read_where_they_are_and_null_where_they_are_not(hospital):
    assert "valueuom" in readable(PAPER.reading)["labevents"]
    with contextlib.closing(open_source(hospital)) as source:
        tables = open_tables(source, PAPER.reading)
        assert set(tables) == set(needed(PAPER.reading))
        assert "amountuom" in tables["inputevents_cv"].columns


def test_mimic_iii_is_told_by_what_only_it_has():
    assert is_mimic3({"icustays": frozenset({"icustay_id"})})
    assert is_mimic3({"patients": frozenset({"dob"})})
    assert is_mimic3({"inputevents_cv": frozenset()})
    assert not is_mimic3({"icustays": frozenset({"stay_id"}), "inputevents": frozenset()})
    assert not is_mimic3({})


def test_the_engines_are_told_of_every_table():
    assert LAYOUT.names == {*needed(CLEAN.reading), "inputevents"}


def test_mimic_iv_is_refused_by_its_name(tmp_path):
    (tmp_path / "icustays.csv").write_text("stay_id\n1\n")
    with (
        contextlib.closing(open_source(tmp_path)) as source,
        pytest.raises(DataError, match="looks like MIMIC-IV"),
    ):
        open_tables(source, PAPER.reading)
