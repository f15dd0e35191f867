"""What a text tells of the specimen of a blood gas."""

import ibis
import polars as pl
import pytest

from etips.cohorts.mimic.specimens import is_arterial, specimen_told


@pytest.mark.parametrize(
    ("text", "told", "arterial"),
    [
        ("ART.", True, True), ("ART", True, True), (" art. ", True, True), ("VEN.", True, False),
        ("MIX.", True, False), ("CENTRAL VENOUS.", True, False), ("___", False, False),
        ("", False, False), (None, False, None),
    ],
)  # fmt: skip
def test_texts(text, told, arterial):
    table = ibis.memtable(pl.DataFrame({"text": pl.Series([text], dtype=pl.String)}))
    query = table.select(told=specimen_told(table.text), arterial=is_arterial(table.text))
    (row,) = ibis.duckdb.connect().to_polars(query).rows()
    assert row == (told, arterial)
