"""Which tables of MIMIC-IV are needed, and how it is told."""

import contextlib

import pytest

from etips.cohorts.databases import open_source
from etips.cohorts.mimic4.switches import CLEAN, PAPER
from etips.cohorts.mimic4.tables import (
    FOLDER_OF,
    LAYOUT,
    is_mimic4,
    needed,
    open_tables,
    readable,
)
from etips.errors import DataError


def test_every_table_has_a_folder_and_a_profile_needs_what_it_reads():
    assert set(FOLDER_OF) == set(LAYOUT.tables)
    paper, clean = needed(PAPER.reading), needed(CLEAN.reading)
    assert set(clean) - set(paper) == {"procedureevents"}
    assert set(clean["labevents"]) - set(paper["labevents"]) == {"specimen_id", "value"}
    assert set(clean["prescriptions"]) - set(paper["prescriptions"]) == {"route", "drug_type"}
    assert "valueuom" in readable(PAPER.reading)["chartevents"]


def test_mimic_iv_is_told_by_what_only_it_has():
    assert is_mimic4({"icustays": frozenset({"stay_id"})})
    assert is_mimic4({"patients": frozenset({"anchor_age"})})
    assert is_mimic4({"inputevents": frozenset()})
    assert not is_mimic4({"icustays": frozenset({"icustay_id"}), "inputevents_mv": frozenset()})
    assert not is_mimic4({})


def test_mimic_iii_is_refused_by_its_name(hospital):
    with (
        contextlib.closing(open_source(hospital)) as source,
        pytest.raises(DataError, match="looks like MIMIC-III"),
    ):
        open_tables(source, PAPER.reading)
