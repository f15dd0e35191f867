"""Queries that both databases share, on tables with a few rows."""

import ibis
import polars as pl
import pytest
from raw_tables4 import ADMISSION, ICU, PATIENT, STAY, T, source

from etips.cohorts.mimic import bedside_queries as queries
from etips.cohorts.mimic4 import concepts
from etips.cohorts.mimic4.switches import CLEAN
from etips.cohorts.mimic4.tables import open_tables
from etips.errors import DataError

ITEMS = concepts.select(CLEAN.reading)
PERSON = {"subject_id": PATIENT, "gender": "F", "anchor_age": 60, "anchor_year": 2150}
LEFT = {"subject_id": PATIENT, "hadm_id": ADMISSION, "dischtime": "2150-01-09 12:00:00"}


def test_microbiology_takes_its_date_where_the_time_is_missing(tmp_path):
    day, hour = "2150-01-01 00:00:00", "2150-01-01 05:00:00"
    row = {"subject_id": 7, "chartdate": day}
    rows = [row, {**row, "charttime": hour}, {**row, "charttime": hour}, {**row, "chartdate": ""}]
    with source(tmp_path, microbiologyevents=rows) as opened:
        found = queries.read_microbiology(opened, open_tables(opened, CLEAN.reading))
    assert (found["t"].max() - found["t"].min(), found.height) == (5 * 3600, 2)


def stays(folder, **rows):
    tables = {"icustays": [ICU], "patients": [PERSON], "admissions": [LEFT], **rows}
    with source(folder, **tables) as opened:
        return queries.read_stays(
            opened, open_tables(opened, CLEAN.reading), stay_column="stay_id", born=("anchor_age",)
        )


def test_a_stay_has_its_patient_and_its_admission(tmp_path):
    (found,) = stays(tmp_path, icustays=[ICU, ICU]).iter_rows(named=True)
    assert (found["stay"], found["patient"], found["admission"]) == (STAY, PATIENT, ADMISSION)
    assert found["discharge"] - found["icu_in"] == (8 * 24 + 12) * 3600
    assert (found["anchor_age"], found["death"]) == (60, None)


@pytest.mark.parametrize(
    ("rows", "rule"),
    [
        ({"patients": []}, "^patients: must have a row for every subject_id of icustays"),
        ({"admissions": []}, "^admissions: must have a row for every hadm_id of icustays"),
        ({"patients": [PERSON, {**PERSON, "gender": "M"}]}, "must each name one row"),
    ],
)
def test_a_stay_without_an_owner_or_with_two_is_refused(tmp_path, rows, rule):
    with pytest.raises(DataError, match=rule):
        stays(tmp_path, **rows)


def test_urine_counts_of_candidates_with_a_volume_and_a_time(tmp_path):
    row = {"stay_id": STAY, "charttime": T, "itemid": 226559, "value": 100}
    rows = [row, {**row, "itemid": 226633}, {**row, "itemid": 226627}, {**row, "value": ""},
            {**row, "charttime": ""}, {**row, "stay_id": STAY + 1}]  # fmt: skip
    with source(tmp_path, outputevents=rows) as opened:
        passed = open_tables(opened, CLEAN.reading)["outputevents"]
        candidates = ibis.memtable(pl.DataFrame({"stay_id": [STAY]}))
        query = queries.urine_query(passed, ITEMS, candidates, stay_column="stay_id")
        opened.store(query, "urine", by="stay")
        assert sorted(opened.kept.rows("urine")["itemid"]) == [226559, 226633]


def test_procedures_count_with_a_stay_and_a_start(tmp_path):
    row = {"stay_id": STAY, "starttime": T, "endtime": T, "itemid": 225401}
    rows = [row, {**row, "itemid": 225792}, {**row, "itemid": 225433}, {**row, "starttime": ""}]
    with source(tmp_path, procedureevents=rows) as opened:
        done = open_tables(opened, CLEAN.reading)["procedureevents"]
        query = queries.procedures_query(done, ITEMS, stay_column="stay_id")
        assert sorted(opened.fetch(query)["itemid"]) == [225401, 225792]  # no chest tube
