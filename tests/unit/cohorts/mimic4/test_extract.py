"""What is read from the raw tables of MIMIC-IV."""

from datetime import UTC, datetime

import pytest
from raw_tables4 import ADMISSION, ICU, PATIENT, STAY, T, prescription, source

from etips.cohorts.mimic.bedside import read_block
from etips.cohorts.mimic.infusions import fluids, vasopressors
from etips.cohorts.mimic.measurements import measurements
from etips.cohorts.mimic4 import concepts, extract
from etips.cohorts.mimic4.switches import CLEAN, PAPER
from etips.cohorts.mimic4.tables import open_tables
from etips.cohorts.sepsis3.vasopressors import running_doses


def events(folder, read, profile=CLEAN, **rows):
    """What `read` makes of the kept rows of the stay."""
    with source(folder, **{"icustays": [ICU], **rows}) as opened:
        tables, items = open_tables(opened, profile.reading), concepts.select(profile.reading)
        extract.store_large(opened, tables, items, profile.reading, [STAY])
        block = read_block(opened.kept, 0, 10**9, extract.kept_tables(profile.reading))
        return read(block, items)


def charted(item, value="", number="", t=T):
    return {"stay_id": STAY, "charttime": t, "itemid": item, "value": value, "valuenum": number}


def measured(folder, profile=CLEAN, **rows):
    frame = events(folder, measurements, profile, **rows)
    return sorted(frame.select("concept", "value").rows(), key=str)


DEVICES = {
    "None": 0, "Nasal cannula": 2, "High flow nasal cannula": 2, "Oxymizer": 2, "Face tent": 3,
    "Aerosol-cool": 4, "Trach mask ": 5, "Tracheostomy tube": 5, "T-piece": 5, "High flow neb": 6,
    "Ultrasonic neb": 6, "Vapomist": 6, "Non-rebreather": 7, "Venti mask ": 9,
    "Medium conc mask ": 10, "Endotracheal tube": 1, "CPAP mask ": 1, "Bipap mask ": 1,
    "Other": None,
}  # fmt: skip


def test_devices_count_whatever_blanks_and_case(tmp_path):
    rows = [
        charted(226732, spelt, t=f"2150-01-02 {hour:02}:{minute:02}:00")
        for hour, text in enumerate(DEVICES)
        for minute, spelt in enumerate((text, text.strip(), text.upper(), f"{text} "))
    ]
    found = events(tmp_path, lambda block, items: block.chart, chartevents=rows).sort("t")
    expected = [code for code in DEVICES.values() for _ in range(4)]
    assert found["device"].to_list() == expected
    assert found["has_text"].all()
    assert found["number"].is_null().all()


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


def test_a_result_near_two_stays_goes_to_both(tmp_path):
    later = {**ICU, "stay_id": STAY + 1, "intime": "2150-01-05 12:00:00",
             "outtime": "2150-01-07 00:00:00"}  # fmt: skip
    labs = [result(50971, 4.0, hadm_id="", charttime="2150-01-05 06:00:00")]
    with source(tmp_path, icustays=[ICU, later], labevents=labs) as opened:
        tables, items = open_tables(opened, PAPER.reading), concepts.select(PAPER.reading)
        extract.store_large(opened, tables, items, PAPER.reading, [STAY, STAY + 1])
        assert sorted(opened.kept.rows("labs")["stay"]) == [STAY, STAY + 1]


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


def doses(folder, *rows, profile=CLEAN):
    def read(block, items):
        return running_doses(vasopressors(block, items, profile.rules), profile.rules)

    return events(folder, read, profile, inputevents=rows)["dose"].to_list()


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


def test_litres_are_millilitres(tmp_path):
    def read(block, items):
        return fluids(block, items, drop_rewritten=False)

    rows = [given(225158, amount=1, amountuom="L"), given(225158, amount=500, amountuom="ml")]
    boluses, running = events(tmp_path, read, inputevents=rows)
    assert sorted(boluses["volume"]) == [500, 1000]
    assert running.height == 0


def antibiotics(folder, profile, *rows):
    with source(folder, prescriptions=rows) as opened:
        tables, items = open_tables(opened, profile.reading), concepts.select(profile.reading)
        return extract.read_antibiotics(opened, tables, items, profile.reading)


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


@pytest.mark.parametrize(
    ("anchor_age", "year", "years"),
    [(60, 2150, 60), (60, 2153, 63), (91, 2150, 91), (91, 2153, 91)],
)
def test_age_comes_from_years_and_stops_where_it_is_hidden(tmp_path, anchor_age, year, years):
    person = {"subject_id": PATIENT, "gender": "F", "anchor_age": anchor_age,
              "anchor_year": 2150, "dod": f"{year}-01-09"}  # fmt: skip
    stay = {**ICU, "intime": f"{year}-01-01 00:00:00", "outtime": f"{year}-01-05 00:00:00"}
    left = {"subject_id": PATIENT, "hadm_id": ADMISSION, "dischtime": f"{year}-01-09 12:00:00"}
    with source(tmp_path, icustays=[stay], patients=[person], admissions=[left]) as opened:
        tables = open_tables(opened, PAPER.reading)
        (found,) = extract.read_stays(opened, tables).iter_rows(named=True)
    assert found["age"] == years * 365.25
    assert found["discharge"] - found["death"] == 12 * 3600  # a date, on the day of discharge
    assert (found["stay"], found["patient"], found["admission"]) == (STAY, PATIENT, ADMISSION)


def test_times_in_the_next_century_are_whole_seconds(tmp_path):
    late = {**ICU, "intime": "2210-12-30 00:00:00", "outtime": "2210-12-31 23:59:59"}
    person = {"subject_id": PATIENT, "gender": "F", "anchor_age": 60, "anchor_year": 2210}
    left = {"subject_id": PATIENT, "hadm_id": ADMISSION, "dischtime": "2210-12-31 23:59:59"}
    with source(tmp_path, icustays=[late], patients=[person], admissions=[left]) as opened:
        tables = open_tables(opened, PAPER.reading)
        found = extract.read_stays(opened, tables)
    assert found["icu_out"].item() == datetime(2210, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(("profile", "n"), [(PAPER, 2), (CLEAN, 2)], ids=["paper", "clean"])
def test_line_tips_count_if_taken_in_clean_and_procedures_take_cultures(tmp_path, profile, n):
    tips = [charted(225732, value, value) for value in (0, 1)]
    done = [{"stay_id": STAY, "starttime": T, "endtime": T, "itemid": 225401}]
    with source(tmp_path, chartevents=tips, procedureevents=done) as opened:
        tables, items = open_tables(opened, profile.reading), concepts.select(profile.reading)
        extract.store_large(opened, tables, items, profile.reading, [])
        assert extract.read_cultures(opened.kept, items, profile.reading).height == n
