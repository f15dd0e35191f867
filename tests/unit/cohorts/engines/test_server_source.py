"""DuckDB, PostgreSQL and Spark give the identical cohort."""

import contextlib
import importlib
import importlib.util
import os
import shutil
import subprocess

import pytest
from cohort_building import built, same
from servers import load_postgres, postgres_programs, postgres_server

from etips.cohorts.databases import open_source
from etips.cohorts.engines import sources as server_source
from etips.cohorts.engines.address import Engine
from etips.cohorts.mimic import mimic4
from etips.cohorts.mimic.mimic3 import CLEAN, needed
from etips.cohorts.mimic.mimic4 import Mimic4Extraction, Onset
from etips.errors import DataError, EtipsError
from etips.worlds.raw_tables import MIMIC4_SHAPE

PROFILES = ["paper", "clean"]
IV = "mimiciv_hosp,mimiciv_icu"


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
    load_postgres(postgres, hospital, needed(CLEAN.reading), "simulated")
    return f"{postgres}&schema=simulated"


@pytest.mark.parametrize("profile", PROFILES)
def test_postgres_gives_the_identical_cohort(simulated_in_postgres, hospital, profile):
    same(built(hospital, profile), built(simulated_in_postgres, profile))


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
@pytest.mark.parametrize("profile", PROFILES)
def test_postgres_gives_the_identical_cohort_on_the_demo(postgres, demo, profile):
    schema = f"demo_{profile}"
    load_postgres(postgres, demo, needed(CLEAN.reading), schema)
    same(built(demo, profile), built(f"{postgres}&schema={schema}", profile))


def in_postgres(address, folder, name):
    """The folder's tables in two schemas, as mimic-code's build makes them; their address."""
    places = MIMIC4_SHAPE.files.items()
    schemas = {table: f"{name}_{place.split('/')[0]}" for table, place in places}
    load_postgres(address, folder, Mimic4Extraction.layout.tables, schemas)
    return f"{address}&schema={name}_hosp,{name}_icu"


OWN_DEFINITION = mimic4.CLEAN.changed(onset=Onset.MIMIC_CODE)
READINGS4 = [("clean", {}), ("paper", {}), (OWN_DEFINITION, {"reading": Mimic4Extraction})]


def test_postgres_gives_the_identical_cohort_of_mimic_iv_by_every_definition(postgres, hospital4):
    address = in_postgres(postgres, hospital4, "simulated4")
    for profile, options in READINGS4:
        same(built(hospital4, profile, **options), built(address, profile, **options))


@pytest.mark.slow
def test_postgres_gives_the_identical_cohort_on_the_demo_of_mimic_iv(postgres, demo4):
    address = in_postgres(postgres, demo4, "demo4")
    for profile, options in READINGS4:
        same(built(demo4, profile, **options), built(address, profile, **options))


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
@pytest.mark.parametrize("profile", PROFILES)
def test_spark_gives_the_identical_cohort(spark, hospital, profile):
    same(built(hospital, profile), built(hospital, profile, engine=spark))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_spark_gives_the_identical_cohort_on_the_demo(spark, demo):
    same(built(demo), built(demo, engine=spark))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("place", ["hospital4", "demo4"])
def test_spark_gives_the_identical_cohort_of_mimic_iv(spark, place, request):
    folder = request.getfixturevalue(place)
    for profile, options in READINGS4:
        one, other = (built(folder, profile, engine=e, **options) for e in (Engine.DUCKDB, spark))
        same(one, other)


def test_a_result_fetched_in_pieces_is_the_same(simulated_in_postgres, paper_cohort, monkeypatch):
    monkeypatch.setattr(server_source, "_BATCH_ROWS", 700)
    same(paper_cohort, built(simulated_in_postgres))


class Server:
    """Schemas and their tables, as an Ibis backend tells them."""

    def __init__(self, **schemas):
        self.schemas = schemas

    def list_tables(self, database):
        return self.schemas.get(database, [])

    def disconnect(self):
        pass


@pytest.mark.parametrize(
    ("address", "held", "name"),
    [
        ("postgresql://u@h/d", {"mimiciii": ["T"]}, "postgresql schema mimiciii"),
        ("postgresql://u@h/d?schema=mine", {"mine": ["T"]}, "postgresql schema mine"),
        ("postgresql://u@h/d?schema=a,b", {"b": ["T"]}, "postgresql schema a,b"),
        ("postgresql://u@h/d", {}, "postgresql schema mimiciii"),
        (
            "postgresql://u@h/d",
            {"mimiciv_icu": ["T"]},
            "postgresql schema mimiciv_hosp,mimiciv_icu",
        ),
    ],
)
def test_the_schema_is_the_one_given_or_the_database_s_own(monkeypatch, address, held, name):
    asked = []
    monkeypatch.setattr(
        server_source.ibis, "connect", lambda plain: asked.append(plain) or Server(**held)
    )
    with contextlib.closing(open_source(address)) as source:
        assert source.name == name
        assert asked == ["postgresql://u@h/d"]


@pytest.mark.parametrize(
    ("address", "held", "words"),
    [
        ("", {"mimiciii": ["T"], "mimiciv_icu": ["T"]}, "Add one of schema=mimiciii and schema="),
        ("?schema=a,b", {"a": ["icustays"], "b": ["ICUSTAYS"]}, "must hold icustays once"),
    ],
)
def test_a_server_with_two_databases_must_be_told_which(monkeypatch, address, held, words):
    monkeypatch.setattr(server_source.ibis, "connect", lambda plain: Server(**held))
    with pytest.raises(EtipsError, match=words):
        open_source(f"postgresql://u@h/d{address}")
