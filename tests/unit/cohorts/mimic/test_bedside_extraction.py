"""What the extractions of both databases do alike."""

import contextlib

import pytest

from etips.cohorts.databases import extract, open_source
from etips.errors import DataError


@pytest.fixture(params=["hospital", "hospital4"])
def extraction(request):
    with contextlib.closing(open_source(request.getfixturevalue(request.param))) as source:
        opened = extract(source, "clean")
        opened.begin()
        yield opened


def test_events_come_from_the_rows_that_were_kept(extraction):
    people = extraction.stays()
    kept = people["stay"].sort()[:20].to_list()
    extraction.keep(kept)
    events = extraction.events(kept[0], kept[-1])
    for frame in (events.measurements, events.vasopressors, events.urine, events.infusions):
        assert frame.height > 0
        assert set(frame["stay"]) <= set(kept)
    assert extraction.events(kept[3], kept[3]).urine["stay"].unique().to_list() == [kept[3]]


def test_units_are_told_of_every_table_that_was_read(extraction):
    extraction.keep(extraction.stays()["stay"].to_list())
    tables = {item.table for item in extraction.audit()}
    assert tables >= {"chartevents", "labevents", "outputevents"}
    assert any(table.startswith("inputevents") for table in tables)


def test_a_table_without_a_usable_row_is_refused_by_its_name(extraction):
    with pytest.raises(DataError, match=r"^microbiologyevents: "):
        extraction.require_rows("samples")
    assert extraction.samples().height > 0
    extraction.require_rows("samples")
    extraction.keep([])
    with pytest.raises(DataError, match=r"^outputevents: "):
        extraction.require_rows("urine")
