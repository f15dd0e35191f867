"""DuckDB, PostgreSQL and Spark give the identical cohort."""

import contextlib
import importlib
import importlib.util
import os
import shutil
import subprocess

import pytest
from cohort_building import built
from servers import load_postgres, postgres_programs, postgres_server

from etips.cohorts.mimic3 import engines
from etips.cohorts.mimic3.address import Engine, open_source
from etips.cohorts.mimic3.config import CLEAN, PAPER
from etips.cohorts.mimic3.source import needed
from etips.errors import DataError

PROFILES = [PAPER, CLEAN]


def same(one, other):
    assert one.table.equals(other.table)
    assert one.decisions.equals(other.decisions)
    assert one.onsets.equals(other.onsets)
    assert one.files()["funnel.json"] == other.files()["funnel.json"]


@pytest.fixture(scope="session")
def postgres():
    """Address of a server: ETIPS_TEST_POSTGRES, or one started for the tests."""
    try:
        importlib.import_module("psycopg")
    except ImportError:
        pytest.skip("psycopg is not installed: pip install 'etips[postgres]'")
    if address := os.environ.get("ETIPS_TEST_POSTGRES"):
        yield address
        return
    programs = postgres_programs()
    if programs is None:
        pytest.skip("no PostgreSQL server on this machine and none in ETIPS_TEST_POSTGRES")
    with contextlib.ExitStack() as stack:
        try:
            address = stack.enter_context(postgres_server(programs))
        except (OSError, LookupError, subprocess.SubprocessError) as error:
            pytest.skip(f"PostgreSQL does not start on this machine ({type(error).__name__})")
        yield address


@pytest.fixture(scope="session")
def simulated_in_postgres(postgres, hospital):
    load_postgres(postgres, hospital, needed(CLEAN), "simulated")
    return f"{postgres}&schema=simulated"


@pytest.mark.parametrize("config", PROFILES, ids=lambda config: config.name)
def test_postgres_gives_the_identical_cohort(simulated_in_postgres, hospital, config):
    same(built(hospital, config), built(simulated_in_postgres, config))


def test_a_schema_without_the_tables_is_refused_without_the_password(postgres):
    address = f"{postgres}&schema=nowhere".replace("@", ":s3cret@")
    with pytest.raises(DataError, match="missing: patients") as caught:
        built(address)
    assert "s3cret" not in str(caught.value)


def test_a_server_that_is_not_there_is_refused_in_one_line(postgres):
    del postgres
    with pytest.raises(DataError, match="the engine refused") as caught:
        open_source("postgresql://nobody:s3cret@127.0.0.1:1/nothing")
    assert "s3cret" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("config", PROFILES, ids=lambda config: config.name)
def test_postgres_gives_the_identical_cohort_on_the_demo(postgres, demo, config):
    schema = f"demo_{config.name}"
    load_postgres(postgres, demo, needed(CLEAN), schema)
    same(built(demo, config), built(f"{postgres}&schema={schema}", config))


@pytest.fixture(scope="session")
def spark():
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed: pip install 'etips[spark]'")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, which is not on this machine")
    from pyspark.sql import SparkSession

    try:
        SparkSession.builder.getOrCreate()
    except Exception as error:  # noqa: BLE001 - whatever keeps it from starting is not ours
        pytest.skip(f"Spark does not start on this machine ({type(error).__name__})")
    return Engine.SPARK


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # sockets that Spark leaves to the collector
@pytest.mark.parametrize("config", PROFILES, ids=lambda config: config.name)
def test_spark_gives_the_identical_cohort(spark, hospital, config):
    same(built(hospital, config), built(hospital, config, engine=spark))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_spark_gives_the_identical_cohort_on_the_demo(spark, demo):
    same(built(demo), built(demo, engine=spark))


def test_a_closed_source_leaves_no_folder_behind(hospital, tmp_path):
    with contextlib.closing(open_source(hospital, work=tmp_path)):
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_result_fetched_in_pieces_is_the_same(simulated_in_postgres, paper_cohort, monkeypatch):
    monkeypatch.setattr(engines, "_BATCH_ROWS", 700)
    same(paper_cohort, built(simulated_in_postgres))


def test_an_interrupt_that_an_engine_passes_on_is_one():
    """DuckDB turns Ctrl-C during a query into an error of its own."""
    with pytest.raises(KeyboardInterrupt), engines.refusals("here"):
        raise RuntimeError("Query interrupted")
    with pytest.raises(RuntimeError, match="else"), engines.refusals("here"):
        raise RuntimeError("something else")
