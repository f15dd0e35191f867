"""Section 4.2: one row per stay."""

from datetime import UTC, datetime

import polars as pl
import pytest

from etips.cohorts.sepsis3.demographics import demographics, is_adult
from etips.cohorts.sepsis3.rules import CLEAN, PAPER

HOUR = 3600


def at(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def stay(config=PAPER, **changed):
    row = {
        "stay": 1, "patient": 1, "admission": 1, "gender": "F", "age": 18262.0,
        "death": None, "icu_in": at("2150-01-01"), "icu_out": at("2150-01-05"),
        "discharge": at("2150-01-09"), **changed,
    }  # fmt: skip
    kinds = {name: pl.String if name == "gender" else pl.Int64 for name in row}
    kinds["age"] = pl.Float64
    return demographics(pl.DataFrame([row], schema=kinds), config).row(0, named=True)


def test_gender_is_in_numbers():
    found = stay()
    assert found["gender"] == 2
    assert stay(gender="M")["gender"] == 1


def test_without_a_date_of_death_nobody_died():
    found = stay()
    assert [found[name] for name in ("died_in_hosp", "mortality_90d")] == [0, 0]
    assert found["died_within_48h_of_out_time"] == 0


@pytest.mark.parametrize(
    ("dod", "died"), [("2150-01-08", 1), ("2150-01-10", 1), ("2150-01-10T00:00:01", 0)]
)
def test_death_in_hospital_is_up_to_a_day_after_discharge(dod, died):
    assert stay(death=at(dod))["died_in_hosp"] == died


@pytest.mark.parametrize(
    ("dod", "paper", "clean"),
    [
        ("2150-03-31T15:00:00", 0, 1),  # 89.6 days, but "2 months 30 days 15 hours"
        ("2150-04-01", 1, 1),
        ("2150-04-01T00:00:01", 0, 0),
    ],
)
def test_ninety_days_from_january_the_first(dod, paper, clean):
    found = stay(death=at(dod))["mortality_90d"], stay(CLEAN, death=at(dod))["mortality_90d"]
    assert found == (paper, clean)


def test_the_scripts_count_months_as_thirty_days():
    """15 March to 14 June is 91 days, but 2 months 30 days for PostgreSQL's age()."""
    times = {"icu_in": at("2150-03-15"), "death": at("2150-06-14")}
    assert stay(**times)["mortality_90d"] == 1
    assert stay(CLEAN, **times)["mortality_90d"] == 0


@pytest.mark.parametrize(("hours", "died"), [(47, 1), (48, 0), (-47, 1), (-48, 0)])
def test_death_near_leaving_the_icu_is_strictly_within_48_hours(hours, died):
    found = stay(death=at("2150-01-05") + hours * HOUR)
    assert found["died_within_48h_of_out_time"] == died


@pytest.mark.parametrize(("days", "adult"), [(6574, False), (6574.1, True)])
def test_adults_are_older_than_6574_days(days, adult):
    frame = pl.DataFrame({"age": [float(days)]})
    assert frame.select(is_adult())["age"][0] is adult


def test_readmission_is_any_earlier_stay_or_one_of_the_same_admission_in_clean():
    rows = pl.DataFrame(
        {
            "stay": [3, 1, 2], "patient": [1, 1, 1], "admission": [1, 1, 2],
            "gender": ["M"] * 3, "age": [9e3] * 3, "death": [None] * 3,
            "icu_in": [HOUR, 2 * HOUR, 3 * HOUR], "icu_out": [HOUR] * 3, "discharge": [HOUR] * 3,
        },
        schema_overrides={"death": pl.Int64},
    )  # fmt: skip
    paper = demographics(rows, PAPER).sort("icu_in")["re_admission"].to_list()
    clean = demographics(rows, CLEAN).sort("icu_in")["re_admission"].to_list()
    assert paper == [0, 1, 1]
    assert clean == [0, 1, 0]


def two_stays(config=PAPER, **changed):
    """re_admission of two stays of one patient; `changed` alters the second."""
    row = {
        "stay": 1, "patient": 1, "admission": 1, "gender": "F", "age": 18262.0,
        "death": None, "icu_in": at("2150-01-01"), "icu_out": at("2150-01-05"),
        "discharge": at("2150-01-09"),
    }  # fmt: skip
    kinds = {name: pl.String if name == "gender" else pl.Int64 for name in row}
    kinds["age"] = pl.Float64
    frame = pl.DataFrame([row, {**row, "stay": 2, **changed}], schema=kinds)
    return demographics(frame, config)["re_admission"].to_list()


def test_a_readmission_needs_an_earlier_stay():
    assert two_stays(icu_in=at("2150-01-20")) == [0, 1]
    assert two_stays(icu_in=at("2149-01-20")) == [1, 0]
    assert two_stays() == [0, 0]  # both begin together


def test_a_readmission_is_to_the_same_hospital_admission_in_clean():
    later = {"icu_in": at("2150-01-20")}
    assert two_stays(CLEAN, **later) == [0, 1]
    assert two_stays(CLEAN, admission=2, **later) == [0, 0]
