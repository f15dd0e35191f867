"""MIMIC-IV as the rules ask for it."""

import contextlib
from dataclasses import fields

import pytest
from raw_tables4 import ICU, PATIENT, STAY, T
from raw_tables4 import source as raw_source

from etips.cohorts.databases import DATABASES, extract, open_source, recognise
from etips.cohorts.mimic4.extraction import Mimic4Extraction
from etips.cohorts.mimic4.switches import PAPER, Reading
from etips.cohorts.sepsis3.rules import AntibioticOrder
from etips.errors import DataError, SettingError
from etips.notes import collecting_notes


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


def test_settings_say_what_has_no_effect_here(source):
    settings = extract(source).settings
    assert "drop_rewritten_fluids" in settings["without_effect"]
    assert not {*settings["without_effect"]} & {f.name for f in fields(Reading)}


def test_what_is_seen_and_not_read_is_counted(tmp_path):
    given = {"stay_id": STAY, "starttime": T, "endtime": T, "rate": 1, "rateuom": "mcg/kg/min"}
    rows = {
        "icustays": [ICU],
        "labevents": [{"subject_id": PATIENT, "charttime": T, "itemid": 52024, "valuenum": 1}],
        "inputevents": [{**given, "itemid": item} for item in (221653, 221906, 229999)],
        "chartevents": [{"stay_id": STAY, "charttime": T, "itemid": 229789, "valuenum": 9}],
        "d_items": [
            {"itemid": item, "label": label, "linksto": table}
            for item, label, table in (
                (229999, "NOREPINEPHRINE (new)", "inputevents"),
                (221906, "Norepinephrine", "inputevents"),
                (229998, "Epinephrine note", "chartevents"),
            )
        ],
    }
    with raw_source(tmp_path, **rows) as opened, collecting_notes() as notes:
        extraction = extract(opened)
        extraction.begin()
        extraction.keep([STAY])
        found = {(item.table, item.item): item.n_rows for item in extraction.unread()}
        drugs = extraction.events(0, 10**9).vasopressors
    assert found == {
        ("labevents", 52024): 1, ("inputevents", 221653): 1, ("inputevents", 229999): 1,
        ("chartevents", 229789): 1,
    }  # fmt: skip
    assert drugs["drug"].to_list() == ["norepinephrine"]
    assert notes == ["not read, though named like a vasopressor: items [229999]"]


def test_what_is_missing_is_named(source):
    with pytest.raises(DataError, match="must hold the MIMIC-IV tables; missing: patients, adm"):
        extract(source).begin()


def test_no_prescription_names_a_stay_so_that_no_order_rests_on_it(source):
    profile = PAPER.changed(antibiotic_order=AntibioticOrder.STAY_FIRST)
    with pytest.raises(SettingError, match="antibiotic_order: must be date"):
        Mimic4Extraction(source, profile)
