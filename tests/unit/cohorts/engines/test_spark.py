"""Spark: what can be said of it without one. The rest: test_server_source.py."""

import importlib.util

import pytest

from etips.cohorts.databases import open_source
from etips.cohorts.engines.address import Engine
from etips.errors import FileError, SettingError


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
