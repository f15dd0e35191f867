"""MIMIC-III under a profile, as the rules ask for it."""

import contextlib
from dataclasses import fields

import polars as pl
import pytest

from etips.cohorts.databases import open_source
from etips.cohorts.mimic3.extraction import Mimic3Extraction
from etips.cohorts.mimic3.switches import CLEAN, PAPER
from etips.cohorts.sepsis3.events import CONCEPT, RATE_UNITS, Events
from etips.errors import DataError


@contextlib.contextmanager
def extraction_of(hospital, profile):
    """An extraction that keeps every stay, and the stays."""
    with contextlib.closing(open_source(hospital)) as source:
        extraction = Mimic3Extraction(source, profile)
        extraction.begin()
        stays = extraction.stays()
        extraction.keep(stays["stay"].to_list())
        yield extraction, stays


@pytest.fixture(scope="module", params=[PAPER, CLEAN], ids=lambda profile: profile.name)
def opened(request, hospital):
    with extraction_of(hospital, request.param) as made:
        yield made


def test_every_frame_has_what_the_rules_ask_for(opened):
    extraction, stays = opened
    asked = {
        "stay", "patient", "admission", "gender", "age", "icu_in", "icu_out", "discharge", "death",
    }  # fmt: skip
    assert asked <= set(stays.columns)
    assert set(extraction.antibiotics().columns) == {"entry", "admission", "stay", "t"}
    assert set(extraction.samples().columns) == {"patient", "admission", "t"}
    assert set(extraction.cultures().columns) == {"stay", "t"}


def test_events_are_those_of_the_stays_asked_for_in_neutral_words(opened):
    extraction, stays = opened
    first, last = stays["stay"][0], stays["stay"][9]
    events = extraction.events(first, last)
    for part in fields(Events):
        frame = getattr(events, part.name)
        assert frame["stay"].is_between(first, last).all()
        assert "itemid" not in frame.columns
    assert events.measurements["concept"].dtype == CONCEPT
    assert events.vasopressors["unit"].drop_nulls().is_in(RATE_UNITS).all()
    assert events.fluid_before["stay"].is_unique().all()


def test_a_kind_without_a_row_is_refused_by_the_name_of_its_table(hospital):
    with extraction_of(hospital, PAPER) as (extraction, _):
        extraction.samples()
        extraction.require_rows("samples", "charted", "laboratory", "urine")
        extraction.kept.put("urine", pl.DataFrame({"icustay_id": []}).to_arrow(), append=False)
        with pytest.raises(DataError, match=r"^outputevents: must hold rows that can be used"):
            extraction.require_rows("urine")
