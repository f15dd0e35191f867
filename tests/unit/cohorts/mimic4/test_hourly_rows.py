"""Raw rows that the hourly SOFA is made of."""

import pytest
from raw_tables4 import ADMISSION, ICU, PATIENT, STAY, T, source

from etips.cohorts.mimic4 import hourly_rows
from etips.cohorts.mimic4.switches import CLEAN, Onset
from etips.cohorts.mimic4.tables import open_tables
from etips.errors import DataError

READING = CLEAN.changed(onset=Onset.MIMIC_CODE).reading
OTHER = {**ICU, "stay_id": STAY + 1, "intime": "2149-12-30 00:00:00",
         "outtime": "2149-12-31 20:00:00"}  # fmt: skip


def kept(folder, **rows):
    with source(folder, **{"icustays": [ICU, OTHER], **rows}) as opened:
        hourly_rows.store_hourly(opened, open_tables(opened, READING), [STAY])
        return hourly_rows.read_hourly(opened.kept, 0, 10**9)


def charted(item, stay=STAY, t=T, number=50, value="x"):
    return {"stay_id": stay, "itemid": item, "charttime": t, "valuenum": number, "value": value}


def test_inspired_oxygen_of_the_patient_s_other_stay_counts_if_it_is_near(tmp_path):
    near, far = "2149-12-31 19:00:00", "2149-11-01 00:00:00"
    rows = [
        charted(hourly_rows.FIO2), charted(hourly_rows.FIO2, STAY + 1, near),
        charted(hourly_rows.FIO2, STAY + 1, far), charted(hourly_rows.HEART_RATE, STAY + 1, near),
        charted(hourly_rows.HEART_RATE, t=far), charted(hourly_rows.MODE, value=" SIMV "),
    ]  # fmt: skip
    found = kept(tmp_path, chartevents=rows)["hourly_chart"]
    items = sorted(found["itemid"].to_list())
    assert items == [hourly_rows.HEART_RATE, *2 * [hourly_rows.FIO2], hourly_rows.MODE]
    assert "simv" in found["text"].to_list()


def test_a_number_that_is_none_is_refused_by_its_table(tmp_path):
    with pytest.raises(DataError, match=r"^chartevents: "):
        kept(tmp_path, chartevents=[charted(hourly_rows.FIO2, number="inf")])


def test_results_tell_whether_they_name_the_admission_and_urine_is_summed(tmp_path):
    result = {"subject_id": PATIENT, "charttime": T, "itemid": 50912, "valuenum": 1.5}
    labs = [{**result, "hadm_id": hadm} for hadm in (ADMISSION, 5, "")]
    urine = [{"stay_id": STAY, "charttime": T, "itemid": item, "value": ml}
             for item, ml in ((226559, 100), (227488, 30), (227510, 7))]  # fmt: skip
    given = {"stay_id": STAY, "starttime": T, "endtime": "2150-01-02 01:00:00", "itemid": 221906,
             "rate": 0.2, "rateuom": "mg/kg/min", "patientweight": 80}  # fmt: skip
    found = kept(tmp_path, labevents=labs, outputevents=urine, inputevents=[given])
    assert sorted(found["hourly_labs"]["own"].to_list()) == [False, True]
    assert found["hourly_urine"]["volume"].to_list() == [70]
    assert found["hourly_given"]["rate"].to_list() == [200]
