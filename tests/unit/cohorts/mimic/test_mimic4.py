"""Which tables of MIMIC-IV are needed, and what is read from them."""

import contextlib

import ibis
import polars as pl
import pytest
from raw_tables4 import ADMISSION, ICU, PATIENT, STAY, T, extraction, prescription

from etips.cohorts.databases import DATABASES, extract, open_source, recognise
from etips.cohorts.mimic.extraction import is_arterial
from etips.cohorts.mimic.mimic4 import (
    CLEAN,
    PAPER,
    Mimic4Extraction,
    needed,
)
from etips.cohorts.sepsis3.doses import running_doses
from etips.cohorts.sepsis3.rules import AntibioticOrder
from etips.errors import DataError, SettingError
from etips.notes import collecting_notes


def test_every_table_has_a_folder_and_a_profile_needs_what_it_reads():
    paper, clean = needed(PAPER.reading), needed(CLEAN.reading)
    assert set(clean) - set(paper) == {"procedureevents"}
    assert set(clean["labevents"]) - set(paper["labevents"]) == {"specimen_id", "value"}
    assert set(clean["prescriptions"]) - set(paper["prescriptions"]) == {"route", "drug_type"}
    assert "valueuom" in needed(PAPER.reading, optional=True)["chartevents"]


def test_mimic_iii_is_refused_by_its_name(hospital):
    with (
        contextlib.closing(open_source(hospital)) as source,
        pytest.raises(DataError, match="looks like MIMIC-III"),
    ):
        Mimic4Extraction.open_tables(source, PAPER.reading)


def events(folder, profile=CLEAN, **rows):
    """Events of the stay."""
    with extraction(folder, profile, **{"icustays": [ICU], **rows}) as opened:
        opened.keep([STAY])
        return opened.events(0, 10**9)


def charted(item, value="", number="", t=T):
    return {"stay_id": STAY, "charttime": t, "itemid": item, "value": value, "valuenum": number}


def measured(folder, profile=CLEAN, **rows):
    frame = events(folder, profile, **rows).measurements
    return sorted(frame.select("concept", "value").rows(), key=str)


DEVICES = {
    "None": 0, "Nasal cannula": 2, "High flow nasal cannula": 2, "Oxymizer": 2, "Face tent": 3,
    "Aerosol-cool": 4, "Trach mask ": 5, "Tracheostomy tube": 5, "T-piece": 5, "High flow neb": 6,
    "Ultrasonic neb": 6, "Vapomist": 6, "Non-rebreather": 7, "Venti mask ": 9,
    "Medium conc mask ": 10, "Endotracheal tube": 1, "CPAP mask ": 1, "Bipap mask ": 1,
    "Other": None,
}  # fmt: skip


@pytest.mark.parametrize("text", ["", '""', '" "'])
def test_an_empty_text_is_none_however_it_was_loaded(tmp_path, text):
    rows = [charted(226732, text), charted(220045, text, 80)]
    assert measured(tmp_path, chartevents=rows) == []


def test_none_is_an_eye_score_where_it_is_charted_as_one_and_a_tube_cannot_be_answered_by(tmp_path):
    rows = [
        charted(220739, "None", 1),
        charted(223900, "No Response-ETT", 1),
        charted(223901, "x", 1),
    ]
    assert measured(tmp_path, chartevents=rows) == [
        ("GCS_eye", 1), ("GCS_motor", 1), ("GCS_verbal", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("item", "text", "ventilated"),
    [
        (223849, "CMV/ASSIST", 1), (223849, "Standby", 0), (223849, "Standby ", 0),
        (229314, "SPONT", 1), (229314, "APV (cmv)", 1), (229314, "Standby", 0),
        (229314, "Ambient", 0), (229314, "NIV", 0), (229314, "NIV-ST", 0), (229314, "DuoPaP", 0),
        (229314, "nCPAP-PS", 0), (224687, "7", 1),
    ],
)  # fmt: skip
def test_modes_that_say_ventilated(tmp_path, item, text, ventilated):
    number = text if text.isdigit() else ""
    found = measured(tmp_path, chartevents=[charted(item, text, number)])
    assert ("mechvent", ventilated) in found


def result(item, number="", **changed):
    row = {"subject_id": PATIENT, "hadm_id": ADMISSION, "charttime": T, "itemid": item,
           "valuenum": number, "value": number, "specimen_id": 1}  # fmt: skip
    return {**row, **changed}


@pytest.mark.parametrize(
    ("changed", "by_subject", "by_admission"),
    [
        ({}, 1, 1),
        ({"hadm_id": ""}, 1, 0),
        ({"hadm_id": 5}, 0, 0),
        ({"hadm_id": "", "charttime": "2149-12-31 00:00:00"}, 1, 0),
        ({"hadm_id": "", "charttime": "2149-12-30 23:59:59"}, 0, 0),
        ({"subject_id": 6, "hadm_id": ""}, 0, 0),
        ({"valuenum": ""}, 0, 0),
        ({"value": "___"}, 1, 1),
        ({"value": "___", "valuenum": ""}, 0, 0),
    ],
)
def test_a_result_belongs_to_the_stays_of_its_patient_near_it(
    tmp_path, changed, by_subject, by_admission
):
    rows = [{**result(50971, 4.0), **changed}]
    assert len(measured(tmp_path, PAPER, labevents=rows)) == by_subject
    (tmp_path / "again").mkdir()
    linked = PAPER.changed(laboratory_by_subject=False)
    assert len(measured(tmp_path / "again", linked, labevents=rows)) == by_admission


def test_venous_gases_are_left_out_in_clean_and_one_without_a_kind_is_kept(tmp_path):
    labs = [
        result(50821, 40.0), result(52033, value="VEN."), result(50822, 4.0),
        result(50821, 90.0, specimen_id=2), result(52033, value="ART.", specimen_id=2),
        result(50821, 80.0, specimen_id=3),
        result(50821, 70.0, specimen_id=""), result(52033, value="___", specimen_id=4),
    ]  # fmt: skip
    clean = measured(tmp_path, labevents=labs)
    assert clean == [("Potassium", 4), ("paO2", 70), ("paO2", 80), ("paO2", 90)]
    (tmp_path / "paper").mkdir()
    assert len(measured(tmp_path / "paper", PAPER, labevents=labs)) == 5


def given(item, rate="", unit="", **changed):
    row = {"stay_id": STAY, "starttime": T, "endtime": "2150-01-02 04:00:00", "itemid": item,
           "amount": 8, "amountuom": "mg", "rate": rate, "rateuom": unit,
           "statusdescription": "FinishedRunning", "patientweight": 80}  # fmt: skip
    return {**row, **changed}


@pytest.mark.parametrize("profile", [PAPER, CLEAN], ids=lambda profile: profile.name)
@pytest.mark.parametrize(
    ("item", "dose"),
    [(221906, 0.2), (221289, 0.2), (229617, 0.2), (221749, 0.09), (229630, 0.09), (229631, 0.09),
     (229632, 0.09), (221662, 0.002), (229709, None), (229764, None), (221653, None)],
)  # fmt: skip
def test_vasopressors_of_either_number(tmp_path, profile, item, dose):
    found = doses(tmp_path, given(item, 0.2, "mcg/kg/min"), profile=profile)
    assert found == ([] if dose is None else [dose])


@pytest.mark.parametrize(
    ("weight", "clean"), [(80, 200.0), (1, 0.2), ("", 200.0)], ids=["80 kg", "1 kg", "unknown"]
)
def test_milligrams_count_in_clean_only(tmp_path, weight, clean):
    row = given(221906, 0.2, "mg/kg/min", patientweight=weight)
    assert doses(tmp_path, row) == [clean]
    (tmp_path / "paper").mkdir()
    assert doses(tmp_path / "paper", row, profile=PAPER) == []


@pytest.mark.parametrize(
    ("gsn", "counts"),
    [("009326", True), ("000001 009326", True), ("009326 000001", True), ("1009326", False),
     ("0093260", False), ("9326", False), ("", False)],
)  # fmt: skip
def test_one_of_several_codes_is_enough(tmp_path, gsn, counts):
    assert antibiotics(tmp_path, PAPER, prescription(gsn=gsn)).height == counts


def test_antibiotics_by_name_and_route(tmp_path):
    rows = [
        prescription("Vancomycin"), prescription("CefTRIAXone", route=""),
        prescription("Vancomycin", drug_type="BASE"), prescription("Tobramycin", route="BOTH EYES"),
        prescription("Mupirocin", route="NU"), prescription("Heparin"),
    ]  # fmt: skip
    assert antibiotics(tmp_path, CLEAN, *rows).height == 2


def test_antibiotics_that_begin_together_are_in_an_order_that_comes_from_values(tmp_path):
    late, early = "2150-01-03 00:00:00", "2150-01-01 00:00:00"
    rows = [
        prescription("Vancomycin", start=late, hadm_id=4),
        prescription("Vancomycin", start=T, stoptime=late, hadm_id=3),
        prescription("Vancomycin", start=T, stoptime=T, pharmacy_id=9, hadm_id=2),
        prescription("Cefepime", start=T, stoptime=T, pharmacy_id=9, hadm_id=1),
        prescription("Vancomycin", start=early, hadm_id=0),
    ]
    (tmp_path / "again").mkdir()
    one = antibiotics(tmp_path, CLEAN, *rows)
    other = antibiotics(tmp_path / "again", CLEAN, *rows[::-1])
    assert one.equals(other)
    assert one.sort("entry")["admission"].to_list() == [0, 1, 2, 3, 4]
    assert one["stay"].is_null().all()


def test_devices_count_whatever_blanks_and_case(tmp_path):
    rows = [
        charted(226732, spelt, t=f"2150-01-02 {hour:02}:{minute:02}:00")
        for hour, text in enumerate(DEVICES)
        for minute, spelt in enumerate((text, text.strip(), text.upper(), f"{text} "))
    ]
    found = events(tmp_path, chartevents=rows).measurements.sort("t")
    expected = [code for code in DEVICES.values() for _ in range(4)]
    assert found["value"].to_list() == expected


@pytest.mark.parametrize(
    ("text", "arterial"),
    [("ART.", True), ("ART", True), (" art. ", True), ("VEN.", False), ("MIX.", False),
     ("CENTRAL VENOUS.", False), (None, None)],
)  # fmt: skip
def test_texts_of_a_specimen(text, arterial):
    table = ibis.memtable(pl.DataFrame({"text": pl.Series([text], dtype=pl.String)}))
    (row,) = ibis.duckdb.connect().to_polars(table.select(x=is_arterial(table.text))).rows()
    assert row == (arterial,)


def doses(folder, *rows, profile=CLEAN):
    drugs = events(folder, profile, inputevents=rows).vasopressors
    return running_doses(drugs, profile.rules)["dose"].to_list()


def test_litres_are_millilitres(tmp_path):
    rows = [given(225158, amount=1, amountuom="L"), given(225158, amount=500, amountuom="ml")]
    found = events(tmp_path, inputevents=rows)
    assert sorted(found.boluses["volume"]) == [500, 1000]
    assert found.infusions.height == 0


def antibiotics(folder, profile, *rows):
    with extraction(folder, profile, prescriptions=rows) as opened:
        return opened.antibiotics()


def stays(folder, **rows):
    person = {"subject_id": PATIENT, "gender": "F", "anchor_age": 60, "anchor_year": 2150}
    left = {"subject_id": PATIENT, "hadm_id": ADMISSION, "dischtime": "2150-01-09 12:00:00"}
    tables = {"icustays": [ICU], "patients": [person], "admissions": [left], **rows}
    with extraction(folder, **tables) as opened:
        return opened.stays()


@pytest.mark.parametrize(
    ("anchor_age", "year", "years"),
    [(60, 2150, 60), (60, 2153, 63), (91, 2150, 91), (91, 2153, 91)],
)
def test_age_comes_from_years_and_stops_where_it_is_hidden(tmp_path, anchor_age, year, years):
    person = {"subject_id": PATIENT, "gender": "F", "anchor_age": anchor_age,
              "anchor_year": 2150, "dod": f"{year}-01-09"}  # fmt: skip
    stay = {**ICU, "intime": f"{year}-01-01 00:00:00", "outtime": f"{year}-01-05 00:00:00"}
    left = {"subject_id": PATIENT, "hadm_id": ADMISSION, "dischtime": f"{year}-01-09 12:00:00"}
    (found,) = stays(
        tmp_path, icustays=[stay, stay], patients=[person], admissions=[left]
    ).iter_rows(named=True)
    assert found["age"] == years * 365.25
    assert found["discharge"] - found["death"] == 12 * 3600  # a date, on the day of discharge
    assert (found["stay"], found["patient"], found["admission"]) == (STAY, PATIENT, ADMISSION)


def test_a_stay_without_an_owner_or_with_two_is_refused(tmp_path):
    person = {"subject_id": PATIENT, "gender": "F", "anchor_age": 60, "anchor_year": 2150}
    for rows, rule in (
        ({"patients": []}, "^patients: must have a row for every subject_id of icustays"),
        ({"admissions": []}, "^admissions: must have a row for every hadm_id of icustays"),
        ({"patients": [person, {**person, "gender": "M"}]}, "must each name one row"),
    ):
        with pytest.raises(DataError, match=rule):
            stays(tmp_path, **rows)


def test_a_sample_takes_its_date_where_the_time_is_missing(tmp_path):
    day, hour = "2150-01-01 00:00:00", "2150-01-01 05:00:00"
    row = {"subject_id": 7, "chartdate": day}
    rows = [row, {**row, "charttime": hour}, {**row, "charttime": hour}, {**row, "chartdate": ""}]
    with extraction(tmp_path, microbiologyevents=rows) as opened:
        found = opened.samples()
    assert (found["t"].max() - found["t"].min(), found.height) == (5 * 3600, 2)


def test_urine_counts_of_candidates_with_a_volume_and_a_time(tmp_path):
    row = {"stay_id": STAY, "charttime": T, "itemid": 226559, "value": 100}
    rows = [row, {**row, "itemid": 226633}, {**row, "itemid": 226627}, {**row, "value": ""},
            {**row, "charttime": ""}, {**row, "stay_id": STAY + 1}]  # fmt: skip
    with extraction(tmp_path, outputevents=rows) as opened:
        opened.keep([STAY])
        assert sorted(opened.kept.rows("urine")["itemid"]) == [226559, 226633]


@pytest.mark.parametrize("profile", [PAPER, CLEAN], ids=lambda profile: profile.name)
def test_line_tips_count_if_taken_in_clean_and_procedures_take_cultures(tmp_path, profile):
    tips = [charted(225732, value, value) for value in (0, 1)]
    row = {"stay_id": STAY, "starttime": T, "endtime": T, "itemid": 225401}
    done = [row, {**row, "itemid": 225433}, {**row, "starttime": ""}]  # a chest tube, and no start
    with extraction(tmp_path, profile, chartevents=tips, procedureevents=done) as opened:
        opened.keep([])
        assert opened.cultures().height == 2


@pytest.fixture
def source(tmp_path):
    """A source that is told by one table, and lacks the others."""
    (tmp_path / "icu").mkdir()
    (tmp_path / "icu" / "icustays.csv").write_text("subject_id,hadm_id,stay_id,intime,outtime\n")
    with contextlib.closing(open_source(tmp_path)) as opened:
        yield opened


def test_it_is_recognised_and_opened_under_clean(source):
    assert recognise(source) is DATABASES["mimic4"]
    opened = extract(source)
    assert (opened.profile, opened.name) == ("clean", "mimic4")
    assert opened.settings["arterial_gases_only"] is True
    assert extract(source, "paper", {"stays_per_block": 7}).rules.stays_per_block == 7


def test_what_is_missing_is_named(source):
    with pytest.raises(DataError, match="must hold the MIMIC-IV tables; missing: patients, adm"):
        extract(source).begin()


def test_no_prescription_names_a_stay_so_that_no_order_rests_on_it(source):
    profile = PAPER.changed(antibiotic_order=AntibioticOrder.STAY_FIRST)
    with pytest.raises(SettingError, match="antibiotic_order: must be date"):
        Mimic4Extraction(source, profile)


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
    with collecting_notes() as notes, extraction(tmp_path, **rows) as opened:
        opened.keep([STAY])
        found = {(item.table, item.item): item.n_rows for item in opened.unread()}
        drugs = opened.events(0, 10**9).vasopressors
    assert found == {
        ("labevents", 52024): 1, ("inputevents", 221653): 1, ("inputevents", 229999): 1,
        ("chartevents", 229789): 1,
    }  # fmt: skip
    assert drugs["drug"].to_list() == ["norepinephrine"]
    assert notes == ["not read, though named like a vasopressor: items [229999]"]
