"""A finished cohort and the files it is written as."""

import io
import json
from dataclasses import replace

import polars as pl

from etips.cohorts.dataset.dose_actions import DoseClasses


def test_the_name_of_a_cohort_shows_sizes_and_no_patient(paper_cohort):
    shown = repr(paper_cohort)
    assert (
        shown
        == f"Cohort(profile='paper', n_stays={paper_cohort.funnel.stages[-1].n_stays}, "
        + (f"n_rows={paper_cohort.table.height})")
    )


def test_tables_come_back_from_their_files(paper_cohort):
    files = paper_cohort.files()
    for name, frame in (
        ("table", paper_cohort.table),
        ("decisions", paper_cohort.decisions),
        ("onset", paper_cohort.onsets),
    ):
        assert pl.read_parquet(io.BytesIO(files[f"{name}.parquet"])).equals(frame)
    assert paper_cohort.onsets.columns == ["icustay_id", "onset"]


def test_settings_name_the_database_and_every_switch(paper_cohort):
    settings = json.loads(paper_cohort.files()["config.json"])
    assert (settings["database"], settings["name"]) == ("mimic3", "paper")
    assert {"half_open_steps", "metavision_devices", "window_1"} <= set(settings)


def test_what_is_no_number_is_null_in_json(paper_cohort):
    nothing = DoseClasses((float("nan"),) * 3, (0.0, *[float("nan")] * 4), (9, 0, 0, 0, 0))
    doses = json.loads(replace(paper_cohort, fluid=nothing).files()["doses.json"])
    assert doses["input_4hourly"]["edges"] == [None] * 3
    again = DoseClasses.from_json(doses["input_4hourly"])
    assert (again.counts, again.medians[0]) == (nothing.counts, 0.0)
