"""Raw tables of the MIMIC-IV shape, as its cohort reads them."""

import contextlib

import pytest

from etips.cohorts.build import build_cohort
from etips.cohorts.databases import extract, open_source
from etips.cohorts.dataset.sepsis_cohort import to_trajectories
from etips.cohorts.engines.sources import DuckDBSource
from etips.cohorts.mimic.mimic4 import (
    CLEAN,
    PAPER,
    Mimic4Extraction,
    needed,
)
from etips.worlds.mimic4_tables import MIMIC4_SHAPE


@pytest.mark.parametrize("parquet", [False, True])
def test_the_tables_are_recognised_and_hold_what_the_cohort_needs(tmp_path, parquet):
    MIMIC4_SHAPE.write_simulated(tmp_path / "raw", n_stays=5, seed=1, parquet=parquet)
    with contextlib.closing(DuckDBSource(tmp_path / "raw", Mimic4Extraction.layout)) as source:
        assert Mimic4Extraction.recognises(source.tables())
        for profile in (PAPER, CLEAN):
            assert set(needed(profile.reading)) <= set(
                Mimic4Extraction.open_tables(source, profile.reading)
            )


def test_copies_keep_their_times_since_ages_are_counted_in_years(tmp_path):
    MIMIC4_SHAPE.write_simulated(tmp_path / "raw", n_stays=5, seed=1)
    MIMIC4_SHAPE.write_copies(tmp_path / "two", source=tmp_path / "raw", copies=2)
    with contextlib.closing(DuckDBSource(tmp_path / "two", Mimic4Extraction.layout)) as source:
        stays = source.fetch(Mimic4Extraction.open_tables(source, CLEAN.reading)["icustays"])
    assert stays["intime"].n_unique() == 5
    assert stays["stay_id"].n_unique() == 10


@pytest.mark.parametrize("profile", ["clean", "paper"])
def test_a_cohort_comes_of_it_in_both_profiles(tmp_path, profile):
    MIMIC4_SHAPE.write_simulated(tmp_path / "raw", n_stays=40, seed=2, parquet=True)
    with contextlib.closing(open_source(tmp_path / "raw")) as source:
        cohort = build_cohort(extract(source, profile))
    assert cohort.settings["database"] == "mimic4"
    stays = to_trajectories(cohort)
    assert stays.n_stays > 11
    assert stays.n_decisions > 100
    assert len(stays.schema.dosed_features) == 2
    assert min(cohort.vasopressor.counts) > 0
