"""From what the user types to a source."""

import pytest

from etips.cohorts.databases import LAYOUTS
from etips.cohorts.engines.address import Engine, open_source, resumable_source
from etips.errors import FileError, SettingError


@pytest.mark.parametrize(
    ("address", "engine", "rule"),
    [
        ("nowhere", Engine.DUCKDB, "must be an existing folder or file"),
        ("nowhere", Engine.POSTGRES, "must be postgresql://"),
        ("postgresql://u@h:notaport/d", Engine.DUCKDB, "must be postgresql://user@host:port"),
    ],
)
def test_an_address_that_is_none_is_refused(tmp_path, monkeypatch, address, engine, rule):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingError, match=f"^source: {rule}"):
        open_source(address, LAYOUTS, engine=engine)


@pytest.mark.parametrize("size", ["", "2", "2 apples", "1MB", "-2GB"])
def test_a_memory_limit_that_is_no_size_or_too_small_is_refused(tmp_path, size):
    with pytest.raises(SettingError, match=r"^memory limit: must be a size such as 2GB"):
        open_source(tmp_path, LAYOUTS, memory_limit=size)


def test_what_was_read_stays_after_an_interrupt_and_goes_after_anything_else(hospital, tmp_path):
    out = tmp_path / "c"
    for error, left in ((KeyboardInterrupt, [".c.work"]), (ValueError, [])):
        with pytest.raises(error), resumable_source(hospital, LAYOUTS, out=out):
            raise error
        assert [entry.name for entry in tmp_path.iterdir()] == left


def test_a_place_without_a_folder_to_lie_in_is_refused(hospital, tmp_path):
    with (
        pytest.raises(FileError, match="must be a folder that exists"),
        resumable_source(hospital, LAYOUTS, out=tmp_path / "none" / "c"),
    ):
        pass
