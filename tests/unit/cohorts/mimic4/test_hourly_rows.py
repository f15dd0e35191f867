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
        charted(hourly_rows.MODE, t=far, value=" SIMV "),
    ]  # fmt: skip
    found = kept(tmp_path, chartevents=rows)["hourly_chart"]
    items = sorted(found["itemid"].to_list())
    assert items == [*2 * [hourly_rows.FIO2], hourly_rows.MODE]
    assert "simv" in found["text"].to_list()


@pytest.mark.parametrize(
    ("t", "counts"),
    [("2149-12-01 00:00:00", 0), ("2149-12-01 00:00:01", 1), ("2150-02-04 23:59:59", 1),
     ("2150-02-05 00:00:00", 0)],
)  # fmt: skip
def test_a_heart_rate_a_month_off_the_stay_makes_no_hours(tmp_path, t, counts):
    found = kept(tmp_path, chartevents=[charted(hourly_rows.HEART_RATE, t=t)])["hourly_chart"]
    assert found.height == counts


def test_heart_rates_and_parts_of_the_coma_scale_without_a_value_are_times(tmp_path):
    empty = [charted(item, number="", value="") for item in (hourly_rows.HEART_RATE, 220739)]
    found = kept(tmp_path, chartevents=empty)["hourly_chart"]
    assert found["itemid"].sort().to_list() == [220045, 220739]
    assert found["number"].is_null().all()
    assert found["text"].is_null().all()


def test_a_number_that_is_none_is_refused_by_its_table(tmp_path):
    with pytest.raises(DataError, match=r"^chartevents: "):
        kept(tmp_path, chartevents=[charted(hourly_rows.FIO2, number="inf")])


def test_results_tell_whether_they_name_the_admission_and_urine_is_summed(tmp_path):
    result = {"subject_id": PATIENT, "charttime": T, "itemid": 50912, "valuenum": 1.5}
    labs = [{**result, "hadm_id": hadm} for hadm in (ADMISSION, 5, "")]
    urine = [{"stay_id": STAY, "charttime": T, "itemid": item, "value": ml}
             for item, ml in ((226559, 100), (227488, 30), (227510, 7))]  # fmt: skip
    found = kept(tmp_path, labevents=labs, outputevents=urine)
    assert sorted(found["hourly_labs"]["own"].to_list()) == [False, True]
    assert found["hourly_urine"]["volume"].to_list() == [70]


def test_milligrams_are_converted_for_norepinephrine_alone(tmp_path):
    row = {"stay_id": STAY, "starttime": T, "endtime": "2150-01-02 01:00:00",
           "rate": 0.2, "rateuom": "mg/kg/min", "patientweight": 80}  # fmt: skip
    drugs = (hourly_rows.NOREPINEPHRINE, hourly_rows.EPINEPHRINE, hourly_rows.DOPAMINE)
    given = [{**row, "itemid": item} for item in drugs]
    found = kept(tmp_path, inputevents=given)["hourly_given"]
    rates = dict(found.select("itemid", "rate").iter_rows())
    assert rates == dict(zip(drugs, (200, 0.2, 0.2), strict=True))


def test_a_collection_of_urine_without_a_volume_ends_the_one_before(tmp_path):
    later = "2150-01-02 02:00:00"
    row = {"stay_id": STAY, "itemid": 226559}
    urine = [{**row, "charttime": T, "value": 100}, {**row, "charttime": later, "value": ""}]
    found = kept(tmp_path, outputevents=urine)["hourly_urine"].sort("t")
    assert found["volume"].to_list() == [100, None]
