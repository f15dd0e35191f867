"""From what the user types to a source."""

import importlib.util

import pytest

from etips.cohorts.databases import open_source, resumable_source
from etips.cohorts.engines.address import Engine
from etips.errors import FileError, SettingError


@pytest.mark.parametrize(
    ("address", "engine", "rule"),
    [
        ("nowhere", Engine.DUCKDB, "must be an existing folder or file"),
        ("nowhere", Engine.POSTGRES, "must be postgresql://"),
        ("postgresql://u:S3CRET@h:notaport/d", Engine.DUCKDB, "must be postgresql://user@host"),
        ("postgresql://[::1/x", Engine.DUCKDB, "must be postgresql://user@host"),
    ],
)
def test_an_address_that_is_none_is_refused(tmp_path, monkeypatch, address, engine, rule):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingError, match=f"^source: {rule}") as caught:
        open_source(address, engine=engine)
    assert "S3CRET" not in str(caught.value)


def test_what_was_read_stays_after_an_interrupt_and_goes_after_anything_else(hospital, tmp_path):
    out = tmp_path / "c"
    for error, left in ((KeyboardInterrupt, [".c.work"]), (ValueError, [])):
        with pytest.raises(error), resumable_source(hospital, out=out):
            raise error
        assert [entry.name for entry in tmp_path.iterdir()] == left


def test_a_place_without_a_folder_to_lie_in_is_refused(hospital, tmp_path):
    with (
        pytest.raises(FileError, match="must be a folder that exists"),
        resumable_source(hospital, out=tmp_path / "none" / "c"),
    ):
        pass


def test_without_pyspark_the_refusal_says_what_to_install(tmp_path):
    if importlib.util.find_spec("pyspark") is not None:
        pytest.skip("pyspark is installed")
    for address, engine in ((str(tmp_path), Engine.SPARK), ("spark:mimic", Engine.DUCKDB)):
        with pytest.raises(SettingError, match=r"spark needs pyspark. .*etips\[spark\]"):
            open_source(address, engine=engine)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # sockets that Spark leaves to the collector
def test_a_place_that_is_no_folder_is_refused(tmp_path):
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'etips[spark]'")
    with pytest.raises(FileError, match="must be a folder of tables"):
        open_source(tmp_path / "nowhere", engine=Engine.SPARK)
