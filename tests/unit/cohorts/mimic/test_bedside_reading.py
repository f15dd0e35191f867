"""Switches that every MIMIC has."""

from dataclasses import replace

import pytest

from etips.cohorts.mimic import bedside_reading
from etips.cohorts.mimic.bedside_reading import BedsideReading
from etips.cohorts.mimic3.switches import Reading as Reading3
from etips.cohorts.mimic4.switches import Onset
from etips.cohorts.mimic4.switches import Reading as Reading4


def test_databases_share_switches_and_have_their_own():
    shared = set(bedside_reading.switches_of(BedsideReading))
    own = [set(bedside_reading.switches_of(kind)) - shared for kind in (Reading3, Reading4)]
    assert own == [
        {"drop_rewritten_fluids", "complete_fluid_items", "drop_charted_errors"},
        {"milligram_rates", "laboratory_by_subject"},
    ]


def test_all_on_leaves_what_is_no_switch():
    reading = bedside_reading.all_on(Reading4(onset=Onset.MIMIC_CODE))
    assert all(getattr(reading, name) for name in bedside_reading.switches_of(Reading4))
    assert reading.onset is Onset.MIMIC_CODE


@pytest.mark.parametrize("switch", ["cultures_from_procedures", "corrected_items"])
def test_procedures_are_read_for_cultures_and_for_ventilation(switch):
    assert not BedsideReading().reads_procedures
    assert replace(BedsideReading(), **{switch: True}).reads_procedures
