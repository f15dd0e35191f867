"""MIMIC-IV as the rules ask for it."""

import contextlib

import pytest

from etips.cohorts.databases import DATABASES, extract, open_source, recognise
from etips.cohorts.mimic4.extraction import Mimic4Extraction
from etips.cohorts.mimic4.switches import PAPER
from etips.cohorts.sepsis3.rules import AntibioticOrder
from etips.errors import DataError, SettingError


@pytest.fixture
def source(tmp_path):
    """A source that is told by one table, and lacks the others."""
    (tmp_path / "icu").mkdir()
    (tmp_path / "icu" / "icustays.csv").write_text("subject_id,hadm_id,stay_id,intime,outtime\n")
    with contextlib.closing(open_source(tmp_path)) as opened:
        yield opened


def test_it_is_recognised_and_opened_under_clean(source):
    assert recognise(source) is DATABASES["mimic4"]
    extraction = extract(source)
    assert (extraction.profile, extraction.database) == ("clean", "mimic4")
    assert extraction.settings["arterial_gases_only"] is True
    assert extract(source, "paper", {"stays_per_block": 7}).rules.stays_per_block == 7


def test_what_is_missing_is_named(source):
    with pytest.raises(DataError, match="must hold the MIMIC-IV tables; missing: patients, adm"):
        extract(source).begin()


def test_no_prescription_names_a_stay_so_that_no_order_rests_on_it(source):
    profile = PAPER.changed(antibiotic_order=AntibioticOrder.STAY_FIRST)
    with pytest.raises(SettingError, match="antibiotic_order: must be date"):
        Mimic4Extraction(source, profile)
