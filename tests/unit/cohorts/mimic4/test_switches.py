"""Profiles of MIMIC-IV."""

from dataclasses import fields

from etips.cohorts.mimic4.switches import CLEAN, PAPER, PROFILES, SWITCHES, Onset, Reading
from etips.cohorts.sepsis3.rules import AntibioticOrder


def test_clean_is_the_first_and_corrects_everything():
    assert list(PROFILES) == ["clean", "paper"]
    assert all(getattr(CLEAN.reading, name) for name in SWITCHES)
    on = {name for name in SWITCHES if getattr(PAPER.reading, name)}
    assert on == {"laboratory_by_subject"}
    assert {f.name for f in fields(Reading)} == {*SWITCHES, "onset"}
    assert CLEAN.reading.onset is PAPER.reading.onset is Onset.RULES


def test_antibiotics_go_by_date_in_both():
    orders = {profile.rules.antibiotic_order for profile in PROFILES.values()}
    assert orders == {AntibioticOrder.DATE}


def test_procedures_are_read_in_clean_only():
    assert CLEAN.reading.reads_procedures
    assert not PAPER.reading.reads_procedures
