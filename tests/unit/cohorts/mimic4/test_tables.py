"""Which tables of MIMIC-IV are needed, and how it is told."""

from etips.cohorts.mimic4.switches import CLEAN, PAPER
from etips.cohorts.mimic4.tables import FOLDER_OF, LAYOUT, is_mimic4, needed, readable


def test_every_table_has_a_folder_and_a_profile_needs_what_it_reads():
    assert set(FOLDER_OF) == set(LAYOUT.tables)
    paper, clean = needed(PAPER.reading), needed(CLEAN.reading)
    assert set(clean) - set(paper) == {"procedureevents"}
    assert set(clean["labevents"]) - set(paper["labevents"]) == {"specimen_id", "value"}
    assert set(clean["prescriptions"]) - set(paper["prescriptions"]) == {"route", "drug_type"}
    assert "valueuom" in readable(PAPER.reading)["chartevents"]


def test_it_is_told_by_the_name_of_a_stay():
    assert is_mimic4({"icustays": frozenset({"stay_id"})})
    assert not is_mimic4({"icustays": frozenset({"icustay_id"})})
    assert not is_mimic4({})
