"""How MIMIC-III is read in the two profiles."""

from dataclasses import fields

from etips.cohorts.mimic3.switches import CLEAN, PAPER, PROFILES, SWITCHES, Reading
from etips.cohorts.sepsis3.rules import Rules


def test_clean_turns_every_switch_on_and_paper_none():
    assert len(SWITCHES) == 10
    assert not any(getattr(PAPER.reading, name) for name in SWITCHES)
    assert all(getattr(CLEAN.reading, name) for name in SWITCHES)
    assert PROFILES == {"paper": PAPER, "clean": CLEAN}


def test_no_setting_has_the_name_of_a_rule():
    assert not {f.name for f in fields(Reading)} & {f.name for f in fields(Rules)}


def test_procedures_are_read_for_either_of_two_corrections():
    assert not PAPER.reading.reads_procedures
    for switch in ("cultures_from_procedures", "corrected_items"):
        assert PAPER.changed(**{switch: True}).reading.reads_procedures
