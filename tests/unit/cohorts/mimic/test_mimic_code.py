"""Sepsis-3 as mimic-code defines it: suspicion, hourly SOFA, ventilation; worked by hand."""

import polars as pl
import pytest
from raw_tables4 import ADMISSION, ICU, PATIENT, STAY, T, extraction, prescription

from etips.cohorts.mimic import hourly_sofa as rows
from etips.cohorts.mimic import mimic_code
from etips.cohorts.mimic.hourly_sofa import (
    PARTS,
    coma_scores,
    daily_urine,
    hourly_sofa,
    invasive_ventilation,
    kinds_of_support,
    oxygen_ratios,
)
from etips.cohorts.mimic.mimic4 import CLEAN, Onset

HOUR, DAY = 3600, 24 * 3600
AT = 100 * DAY + 12 * HOUR  # noon
BY_MIMIC_CODE = CLEAN.changed(onset=Onset.MIMIC_CODE)


def kept(folder, **lines):
    with extraction(folder, BY_MIMIC_CODE, **{"icustays": [ICU, OTHER], **lines}) as opened:
        opened.keep([STAY])
        return rows.read_hourly(opened.kept, 0, 10**9)


OTHER = {**ICU, "stay_id": STAY + 1, "intime": "2149-12-30 00:00:00",
         "outtime": "2149-12-31 20:00:00"}  # fmt: skip


def charted(item, stay=STAY, t=T, number=50, value="x"):
    return {"stay_id": stay, "itemid": item, "charttime": t, "valuenum": number, "value": value}


def test_inspired_oxygen_of_the_patient_s_other_stay_counts_if_it_is_near(tmp_path):
    near, far = "2149-12-31 19:00:00", "2149-11-01 00:00:00"
    lines = [
        charted(rows.FIO2), charted(rows.FIO2, STAY + 1, near),
        charted(rows.FIO2, STAY + 1, far), charted(rows.HEART_RATE, STAY + 1, near),
        charted(rows.MODE, t=far, value=" SIMV "),
    ]  # fmt: skip
    found = kept(tmp_path, chartevents=lines)["hourly_chart"]
    items = sorted(found["itemid"].to_list())
    assert items == [*2 * [rows.FIO2], rows.MODE]
    assert "simv" in found["text"].to_list()


@pytest.mark.parametrize(
    ("t", "counts"),
    [("2149-12-01 00:00:00", 0), ("2149-12-01 00:00:01", 1), ("2150-02-04 23:59:59", 1),
     ("2150-02-05 00:00:00", 0)],
)  # fmt: skip
def test_a_heart_rate_a_month_off_the_stay_makes_no_hours(tmp_path, t, counts):
    found = kept(tmp_path, chartevents=[charted(rows.HEART_RATE, t=t)])["hourly_chart"]
    assert found.height == counts


def test_heart_rates_and_parts_of_the_coma_scale_without_a_value_are_times(tmp_path):
    empty = [charted(item, number="", value="") for item in (rows.HEART_RATE, 220739)]
    found = kept(tmp_path, chartevents=empty)["hourly_chart"]
    assert found["itemid"].sort().to_list() == [220045, 220739]
    assert found["number"].is_null().all()
    assert found["text"].is_null().all()


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
    drugs = (rows.NOREPINEPHRINE, rows.EPINEPHRINE, rows.DOPAMINE)
    given = [{**row, "itemid": item} for item in drugs]
    found = kept(tmp_path, inputevents=given)["hourly_given"]
    rates = dict(found.select("itemid", "rate").iter_rows())
    assert rates == dict(zip(drugs, (200, 0.2, 0.2), strict=True))


CHART = {"stay": pl.Int64, "itemid": pl.Int32, "t": pl.Int64, "number": pl.Float64,
         "text": pl.String}  # fmt: skip
LABS = {"stay": pl.Int64, "itemid": pl.Int32, "t": pl.Int64, "number": pl.Float64,
        "specimen": pl.Int64, "arterial": pl.Boolean, "own": pl.Boolean}  # fmt: skip
GIVEN = {"stay": pl.Int64, "itemid": pl.Int32, "start": pl.Int64, "end": pl.Int64,
         "rate": pl.Float64}  # fmt: skip
URINE = {"stay": pl.Int64, "t": pl.Int64, "volume": pl.Float64}


def frame(lines, schema):
    return pl.DataFrame([(1, *line) for line in lines], schema=schema, orient="row")


def charts(*lines):
    """(item, hour, number, text)."""
    full = [(item, round(h * HOUR), *rest, *(None, None)[len(rest) :]) for item, h, *rest in lines]
    return frame(full, CHART)


def labs(*lines):
    """(item, hour, number, specimen, arterial, own)."""
    return frame([(item, round(h * HOUR), *rest) for item, h, *rest in lines], LABS)


def scores(charted=(), measured=(), given=(), urine=()):
    """Parts of the score by hour, of a stay whose heart rates are at 0.5 h and 30 h."""
    beats = [(rows.HEART_RATE, 0.5, 80.0), (rows.HEART_RATE, 30, 80.0)]
    frames = dict(
        zip(rows.NAMES, (charts(*beats, *charted), labs(*measured), frame(given, GIVEN),
                         frame(urine, URINE)), strict=True)
    )  # fmt: skip
    return hourly_sofa(frames)


def test_a_part_is_the_worst_of_24_hours_and_0_where_nothing_was_measured():
    found = scores(measured=[(rows.PLATELETS, 3, 45.0, 1, False, True)])
    assert found.filter(pl.col("coagulation") > 0)["hr"].to_list() == list(range(2, 26))
    assert found.filter(pl.col("hr") == 2).select(PARTS).row(0) == (0, 3, 0, 0, 0, 0)


def test_what_happens_at_the_end_of_an_hour_belongs_to_it_and_other_admissions_do_not_count():
    late = scores(measured=[(rows.CREATININE, 3 + 1 / HOUR, 2.5, 1, False, True)])
    assert late.filter(pl.col("renal") == 2)["hr"].min() == 3
    assert scores(measured=[(rows.CREATININE, 3, 2.5, 1, False, False)])["renal"].max() == 0


@pytest.mark.parametrize(
    ("item", "rate", "score"),
    [(rows.NOREPINEPHRINE, 0.11, 4), (rows.NOREPINEPHRINE, 0.1, 3), (rows.EPINEPHRINE, 0.2, 4),
     (rows.DOPAMINE, 16.0, 4), (rows.DOPAMINE, 6.0, 3), (rows.DOPAMINE, 5.0, 2),
     (rows.DOBUTAMINE, 2.0, 2)],
)  # fmt: skip
def test_a_drug_counts_in_the_hours_at_whose_end_it_runs(item, rate, score):
    given = [(item, 2 * HOUR, 3 * HOUR, rate)]
    found = scores(given=given)
    assert found.filter(pl.col("cardiovascular") == score)["hr"].min() == 2
    assert scores(given=[(item, 2 * HOUR, 3 * HOUR - 1, rate)])["cardiovascular"].max() == 0


def test_pressure_is_the_mean_at_one_time_and_the_lowest_of_an_hour():
    low = [(220052, 3, 60.0), (220181, 3, 79.0), (220052, 3.5, 90.0), (220052, 4.5, 0.0)]
    assert scores(low)["cardiovascular"].max() == 1
    assert scores([(220052, 3, 60.0), (220181, 3, 81.0)])["cardiovascular"].max() == 0


def coma(*lines):
    return coma_scores(charts(*lines)).sort("t")["value"].to_list()


def test_coma_carries_parts_for_six_hours_and_a_tube_counts_as_awake():
    eye, verbal, motor = rows.EYE, rows.VERBAL, rows.MOTOR
    assert coma((eye, 0, 2.0), (verbal, 0, 3.0), (motor, 0, 4.0)) == [9]
    assert coma((eye, 0, 2.0), (motor, 5.9, 4.0)) == [2 + 5 + 6, 4 + 2 + 5]
    assert coma((eye, 0, 2.0), (motor, 6, 4.0)) == [2 + 5 + 6, 4 + 5 + 4]
    tube = (verbal, 0, 1.0, "no response-ett")
    assert coma(tube, (eye, 0, 1.0), (motor, 0, 1.0)) == [15]
    assert coma(tube, (eye, 1, 1.0)) == [15, 15]
    assert coma(tube, (eye, 0, 1.0), (verbal, 1, 2.0)) == [15, 2 + 6 + 4]


def ratio(*gases, charted=()):
    return oxygen_ratios(charts(*charted), labs(*gases)).sort("t")["value"].to_list()


def test_inspired_oxygen_comes_with_the_gas_or_was_charted_up_to_four_hours_before():
    gas = [(rows.OXYGEN_PRESSURE, 10, 80.0, 1, False, True), (52033, 10, None, 1, True, True)]
    assert ratio(*gas) == []
    assert ratio(*gas, charted=[(rows.FIO2, 6, 40.0), (rows.FIO2, 10.1, 100.0)]) == [200]
    assert ratio(*gas, charted=[(rows.FIO2, 5.9, 40.0)]) == []
    assert ratio(*gas, charted=[(rows.FIO2, 9, 0.4), (rows.FIO2, 9.5, 15.0)]) == [200]
    with_gas = (rows.GAS_FIO2, 10, 0.5, 1, False, True)
    assert ratio(*gas, with_gas, charted=[(rows.FIO2, 9, 40.0)]) == [160]
    assert ratio(gas[0], with_gas) == []  # nobody says that it is arterial


def test_a_low_ratio_scores_above_2_only_through_a_tube():
    gas = [(rows.OXYGEN_PRESSURE, 10, 40.0, 1, False, True), (52033, 10, None, 1, True, True),
           (rows.GAS_FIO2, 10, 50.0, 1, False, True)]  # fmt: skip
    tube = [(rows.MODE, hour, None, "cmv/assist") for hour in (9, 11)]
    assert scores(measured=gas)["respiration"].max() == 2
    assert scores(tube, gas)["respiration"].max() == 4


def test_urine_is_judged_where_it_was_collected_for_about_a_day():
    beats = charts((rows.HEART_RATE, 0.0, 80.0))
    volumes = frame([(h * HOUR, 10.0) for h in range(1, 26)], URINE)
    found = daily_urine(volumes, beats).sort("t")
    assert (found["t"] // HOUR).to_list() == [22, 23, 24, 25]
    assert found["value"].to_list() == [240.0] * 4
    assert scores(urine=volumes.drop("stay").rows())["renal"].max() == 3


FLOW = rows.FLOWS[0]


def told(*lines):
    """(item, hour, text)."""
    return charts(*((item, hour, None, text) for item, hour, text in lines))


def modes(*hours, text="simv"):
    return [(rows.MODE, hour, text) for hour in hours]


def episodes(*lines):
    found = invasive_ventilation(told(*lines))
    return [(start / HOUR, end / HOUR) for start, end in found.select("start", "end").rows()]


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        ([(rows.DEVICE, 1, "endotracheal tube"), (FLOW, 1, "4")], "invasive"),
        ([(rows.DEVICE, 1, "endotracheal tube")], None),  # no flow beside it
        ([(rows.DEVICE, 1, "trach mask"), (FLOW, 1, "4"), (rows.MODE, 1, "simv")], "tracheostomy"),
        ([(rows.HAMILTON_MODE, 1, "asv")], "invasive"),
        ([(rows.HAMILTON_MODE, 1, "spont")], None),
        ([(rows.HAMILTON_MODE, 1, "niv")], "mask"),
        ([(rows.DEVICE, 1, "nasal cannula"), (rows.DEVICE, 1, "none"), (FLOW, 1, "4")], "none"),
        ([(rows.MODE, 1, "standby")], None),
    ],
)
def test_kinds_of_support(lines, kind):
    assert kinds_of_support(told(*lines))["kind"].to_list() == ([] if kind is None else [kind])


def test_an_episode_ends_when_the_next_kind_begins_and_one_time_is_none():
    assert episodes(*modes(1, 3), (rows.HAMILTON_MODE, 5, "niv")) == [(1, 5)]
    assert episodes(*modes(1)) == []
    assert episodes(*modes(1, 3)) == [(1, 3)]


def test_fourteen_hours_on_the_clock_make_a_new_episode():
    assert episodes(*modes(1, 3, 16, 18)) == [(1, 18)]
    assert episodes(*modes(1, 3, 17, 18)) == [(1, 3), (17, 18)]
    assert episodes(*modes(1, 3.9, 17, 18)) == [(1, 3.9), (17, 18)]


HOUR, DAY = 3600, 24 * 3600


def found(*specimens, at=AT):
    """(culture, onset) of an order, as hours since it; specimens are (day, time or None)."""
    orders = pl.DataFrame({"patient": [1], "admission": [2], "stay": [3], "t": [at]})
    specimens = pl.DataFrame(
        [(1, date, time) for date, time in specimens],
        schema={"patient": pl.Int64, "date": pl.Int64, "time": pl.Int64}, orient="row",
    )  # fmt: skip
    told = mimic_code.suspected(orders, specimens)
    return [((c - at) / HOUR, (o - at) / HOUR) for c, o in told.select("culture", "onset").rows()]


def timed(*hours):
    return [((AT + h * HOUR) // DAY * DAY, round(AT + h * HOUR)) for h in hours]


@pytest.mark.parametrize(
    ("hours", "expected"),
    [
        ((-72,), [(-72, -72)]), ((-72 - 1 / HOUR,), []), ((24,), [(24, 0)]),
        ((24 + 1 / HOUR,), []), ((0,), []), ((-1, -60, 5), [(-60, -60)]), ((3, 20), [(3, 0)]),
    ],
)  # fmt: skip
def test_up_to_three_days_before_and_one_after_never_at_the_same_time(hours, expected):
    assert found(*timed(*hours)) == expected


@pytest.mark.parametrize(
    ("days", "expected"),
    [(0, [(-12, -12)]), (-3, [(-84, -84)]), (-4, []), (1, [(12, 0)]), (2, [])],
)
def test_a_specimen_without_a_time_is_compared_by_days(days, expected):
    assert found(((AT // DAY + days) * DAY, None)) == expected


def test_of_the_earliest_day_a_specimen_with_a_time_goes_before_one_without():
    day = AT // DAY * DAY
    assert found((day, None), (day, day + 6 * HOUR)) == [(-6, -6)]


def test_orders_count_inside_the_stay_with_a_route_and_diluents_beside_the_drug(tmp_path):
    lines = [
        prescription("Vancomycin", subject_id=PATIENT),
        prescription("Vancomycin", start="2149-12-31 23:00:00", subject_id=PATIENT),
        prescription("Cefepime", start="2150-01-05 00:00:00", subject_id=PATIENT),
        prescription("Cefepime", start="2150-01-03 01:00:00", route="", subject_id=PATIENT),
        prescription("Meropenem", start="2150-01-03 02:00:00", route="BOTH EYES"),
        prescription("Ertapenem", start="2150-01-03 03:00:00", subject_id=PATIENT),
        prescription("Vancomycin", start="2150-01-03 04:00:00", drug_type="BASE"),
        prescription("Linezolid", start="2150-01-03 05:00:00", drug_type="BASE"),
        prescription("Mupirocin", start="2150-01-03 06:00:00", route="NU"),
    ]
    with extraction(tmp_path, BY_MIMIC_CODE, icustays=[ICU], prescriptions=lines) as opened:
        orders = mimic_code.read_orders(opened.source, opened.tables)
    hours = (orders["t"] - orders["t"].min()) // HOUR
    assert hours.to_list() == [0, 28, 30]  # at T, a diluent of a drug ordered too, and mupirocin
    assert orders["admission"].unique().to_list() == [ADMISSION]


@pytest.fixture
def score(monkeypatch):
    """Hours at which each stay scores 2."""
    ill = {}

    def scored(stays):
        lines = [(stay, hour * HOUR, 2) for stay in stays for hour in ill.get(stay, ())]
        schema = dict.fromkeys(("stay", "end", "sofa"), pl.Int64)
        return pl.DataFrame(lines, schema=schema, orient="row")

    monkeypatch.setattr(mimic_code, "read_hourly", lambda kept, first, last: range(first, last + 1))
    monkeypatch.setattr(mimic_code, "hourly_sofa", scored)
    return ill


def defined(*suspicions, size=400):
    """Onsets in hours, and the stays with Sepsis-3; suspicions are (stay, hour)."""
    lines = [(stay, hour * HOUR, hour * HOUR, hour * HOUR) for stay, hour in suspicions]
    names = ("stay", "antibiotic", "culture", "onset")
    frame = pl.DataFrame(lines, schema=dict.fromkeys(names, pl.Int64), orient="row")
    own = mimic_code.own_definition(frame, None, size)
    return dict(own.onsets.with_columns(pl.col("onset") // HOUR).rows()), own.septic


@pytest.mark.parametrize(("hour", "septic"), [(52, {1}), (51, set()), (124, {1}), (125, set())])
def test_the_score_lies_from_48_hours_before_to_24_after(score, hour, septic):
    score[1] = [hour]
    assert defined((1, 100)) == ({1: 100}, septic)


def test_the_onset_is_the_first_one_with_a_score_around_it(score):
    score[1] = [300]
    assert defined((1, 100), (1, 290), (1, 310), (2, 50), (2, 40)) == ({1: 290, 2: 40}, {1})


def test_blocks_of_stays_give_the_same(score):
    score.update({1: [10], 2: [10], 3: [500]})
    suspicions = [(stay, 10) for stay in (1, 2, 3)]
    assert defined(*suspicions, size=1) == defined(*suspicions) == ({1: 10, 2: 10, 3: 10}, {1, 2})
