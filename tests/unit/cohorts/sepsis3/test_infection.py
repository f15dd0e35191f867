"""Sections 4.2, 5 and 6: one row per stay, who gets a stay, when an infection is suspected."""

from dataclasses import replace
from datetime import UTC, datetime

import polars as pl
import pytest

from etips.cohorts.sepsis3.infection import (
    attach_antibiotics,
    attach_samples,
    demographics,
    find_onsets,
)
from etips.cohorts.sepsis3.rules import CLEAN, PAPER, AntibioticOrder

HOUR = 3600
DAY = 24 * HOUR
T = 5_000_000_000


def at(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


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


ROW = {
    "stay": 1, "patient": 1, "admission": 1, "gender": "F", "age": 18262.0,
    "death": None, "icu_in": at("2150-01-01"), "icu_out": at("2150-01-05"),
    "discharge": at("2150-01-09"),
}  # fmt: skip
KINDS = dict.fromkeys(ROW, pl.Int64) | {"gender": pl.String, "age": pl.Float64}


def people(*rows, config=PAPER):
    """Demographics of stays that differ from `ROW`."""
    return demographics(pl.DataFrame([{**ROW, **row} for row in rows], schema=KINDS), config)


def stay(config=PAPER, **changed):
    return people(changed, config=config).row(0, named=True)


@pytest.mark.parametrize(
    ("second", "paper", "clean"),
    [
        ({"icu_in": at("2150-01-20")}, [0, 1], [0, 1]),
        ({"icu_in": at("2150-01-20"), "admission": 2}, [0, 1], [0, 0]),
        ({"icu_in": at("2149-01-20")}, [1, 0], [1, 0]),
        ({}, [0, 0], [0, 0]),  # both begin together
    ],
)
def test_a_readmission_needs_an_earlier_stay_of_the_same_admission_in_clean(second, paper, clean):
    for config, expected in ((PAPER, paper), (CLEAN, clean)):
        found = people({}, {"stay": 2, **second}, config=config)
        assert found["re_admission"].to_list() == expected


def onset(antibiotics, samples, config=PAPER, own=None):
    """Onset of one stay from times in seconds after T, or None."""
    own = [True] * len(antibiotics) if own is None else own
    given = pl.DataFrame(
        {
            "stay": [1] * len(antibiotics),
            "t": [T + a for a in antibiotics],
            "entry": list(range(len(antibiotics))),
            "own": own,
        }
    )
    taken = pl.DataFrame(
        {"stay": [1] * len(samples), "t": [T + b for b in samples]},
        schema={"stay": pl.Int64, "t": pl.Int64},
    )
    found = find_onsets(given, taken, config)["onset"].to_list()
    return found[0] - T if found else None


@pytest.mark.parametrize(
    ("antibiotic", "expected"),
    [
        (-24 * HOUR, -24 * HOUR),  # a day before the sample still counts, onset at the antibiotic
        (-24 * HOUR - 1, None),
        (0, 0),
        (72 * HOUR, 0),  # three days after it still counts, onset at the sample
        (72 * HOUR + 1, None),
    ],
)
def test_antibiotic_and_sample_pair_up_within_their_limits(antibiotic, expected):
    assert onset([antibiotic], [0]) == expected


def test_only_the_nearest_sample_is_tested_in_the_scripts_and_every_one_in_clean():
    antibiotic, nearer, farther = 0, 30 * HOUR, -60 * HOUR  # 30 h after fails, 60 h before passes
    assert onset([antibiotic], [nearer, farther]) is None
    assert onset([antibiotic], [nearer, farther], CLEAN) == farther


def test_antibiotics_are_tried_by_row_or_by_date():
    later_row_first = [50 * HOUR, 0]
    samples = [0, 50 * HOUR]
    assert onset(later_row_first, samples) == 50 * HOUR
    by_date = replace(PAPER, antibiotic_order=AntibioticOrder.DATE)
    assert onset(later_row_first, samples, by_date) == 0


def test_rows_with_their_own_stay_id_come_first_whatever_their_date():
    assert onset([0, 50 * HOUR], [0, 50 * HOUR], own=[False, True]) == 50 * HOUR


def stays(*spans, subject=1, admissions=None):
    """Stays of one subject from (start, end) in hours after T."""
    n = len(spans)
    return pl.DataFrame(
        {
            "stay": list(range(1, n + 1)),
            "patient": [subject] * n,
            "admission": admissions or [7] * n,
            "icu_in": [T + start * HOUR for start, _ in spans],
            "icu_out": [T + end * HOUR for _, end in spans],
        }
    )


def sampled(t, table, config=PAPER, hadm=7):
    rows = pl.DataFrame(
        {"patient": [1], "admission": [hadm], "t": [T + t]},
        schema=dict.fromkeys(("patient", "admission", "t"), pl.Int64),
    )
    return attach_samples(rows, table, config)["stay"].to_list()


TWO = stays((0, 10), (40, 50), admissions=[7, 8])


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(-48 * HOUR, [1]), (-48 * HOUR - 1, []), (98 * HOUR, [2]), (98 * HOUR + 1, [])],
)
def test_a_sample_attaches_up_to_48_hours_outside_a_stay(seconds, expected):
    assert sampled(seconds, TWO, hadm=None) == expected


def test_of_two_stays_within_reach_the_last_wins_and_the_nearest_in_clean():
    assert sampled(5 * HOUR, TWO) == [2]
    assert sampled(5 * HOUR, TWO, CLEAN) == [1]


def test_a_single_stay_takes_samples_a_year_away_but_not_in_clean():
    assert sampled(365 * DAY, stays((0, 10))) == [1]
    assert sampled(365 * DAY, stays((0, 10)), CLEAN) == []


def test_a_far_sample_goes_to_the_only_stay_of_its_admission():
    assert sampled(365 * DAY, TWO, hadm=8) == [2]
    assert sampled(365 * DAY, stays((0, 10), (40, 50))) == []


def test_an_antibiotic_keeps_its_own_stay_and_is_attached_within_its_admission_otherwise():
    rows = pl.DataFrame(
        {
            "entry": [1, 2, 3],
            "admission": [7, 8, 9],
            "stay": [77, None, None],
            "t": [T, T + 365 * DAY, T],
        }
    )
    found = attach_antibiotics(rows, TWO, PAPER).sort("entry")
    assert found["stay"].to_list() == [77, 2]  # admission 9 has no stay
    assert found["own"].to_list() == [True, False]
