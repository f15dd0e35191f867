"""Sepsis-3 is a suspicion with a score of 2 or more around it."""

import polars as pl
import pytest

from etips.cohorts.mimic4 import mimic_code
from etips.cohorts.mimic4.mimic_code import own_definition

HOUR = 3600


@pytest.fixture
def score(monkeypatch):
    """Hours at which each stay scores 2."""
    ill = {}

    def scored(stays):
        rows = [(stay, hour * HOUR, 2) for stay in stays for hour in ill.get(stay, ())]
        schema = dict.fromkeys(("stay", "end", "sofa"), pl.Int64)
        return pl.DataFrame(rows, schema=schema, orient="row")

    monkeypatch.setattr(mimic_code, "read_hourly", lambda kept, first, last: range(first, last + 1))
    monkeypatch.setattr(mimic_code, "hourly_sofa", scored)
    return ill


def defined(*suspicions, size=400):
    """Onsets in hours, and the stays with Sepsis-3; suspicions are (stay, hour)."""
    rows = [(stay, hour * HOUR, hour * HOUR, hour * HOUR) for stay, hour in suspicions]
    names = ("stay", "antibiotic", "culture", "onset")
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.Int64), orient="row")
    own = own_definition(frame, None, size)
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
