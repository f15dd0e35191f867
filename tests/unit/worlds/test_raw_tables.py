"""Raw tables of either shape: written whole, copied, read as a cohort, over nothing else."""

import contextlib
import gzip
import hashlib

import polars as pl
import pytest

from etips.cohorts.build import build_cohort
from etips.cohorts.databases import LAYOUTS, extract, open_source, recognise
from etips.cohorts.dataset.sepsis_cohort import to_trajectories
from etips.cohorts.engines.sources import DuckDBSource
from etips.errors import FileError, SettingError
from etips.worlds.raw_tables import MIMIC3_SHAPE, MIMIC4_SHAPE

SHAPES = {"mimic3": MIMIC3_SHAPE, "mimic4": MIMIC4_SHAPE}


def read(folder, shape, table):
    path = folder / f"{shape.files[table]}.csv.gz"
    if path.exists():
        return pl.read_csv(gzip.decompress(path.read_bytes()), infer_schema_length=None)
    return pl.read_parquet(folder / f"{shape.files[table]}.parquet")


@pytest.fixture(scope="module", params=SHAPES)
def written(request, tmp_path_factory):
    shape, folder = SHAPES[request.param], tmp_path_factory.mktemp("raw") / "tables"
    shape.write_simulated(folder, n_stays=8, seed=2)
    return shape, folder


def test_every_table_is_written_once_where_the_database_keeps_it(written):
    shape, folder = written
    files = {str(path.relative_to(folder)) for path in folder.rglob("*.csv.gz")}
    assert files == {f"{name}.csv.gz" for name in shape.files.values()}
    assert read(folder, shape, "icustays").height == 8


@pytest.mark.parametrize("parquet", [False, True])
def test_the_tables_are_recognised_and_hold_what_every_reading_needs(written, tmp_path, parquet):
    shape, _ = written
    shape.write_simulated(tmp_path / "raw", n_stays=5, seed=1, parquet=parquet)
    with contextlib.closing(DuckDBSource(tmp_path / "raw", LAYOUTS)) as source:
        assert recognise(source) is shape.database
        assert set(shape.database.open_tables(source, shape.widest)) == {*shape.files}


def test_copies_have_numbers_of_their_own_and_lists_of_items_are_not_repeated(written, tmp_path):
    shape, folder = written
    shape.write_copies(tmp_path / "three", source=folder, copies=3)
    for table in shape.files:
        one, three = read(folder, shape, table), read(tmp_path / "three", shape, table)
        ids = [name for name in shape.id_steps if name in one.columns]
        assert three.height == (3 if ids else 1) * one.height, table
        for name in ids:
            assert three[name].n_unique() - three[name].has_nulls() == 3 * (
                one[name].n_unique() - one[name].has_nulls()
            )
    times = read(tmp_path / "three", shape, "icustays").sort(shape.database.stay_column)["intime"]
    assert (times[8] - times[0]).days == shape.days_between_copies
    if shape is MIMIC3_SHAPE:
        dates = read(tmp_path / "three", shape, "prescriptions")["startdate"]
        assert (dates.dt.hour() == 0).all()


def test_one_copy_is_the_source_itself(written, tmp_path):
    shape, folder = written
    shape.write_copies(tmp_path / "one", source=folder, copies=1, parquet=False)
    for table in shape.files:
        one, other = (read(place, shape, table) for place in (folder, tmp_path / "one"))
        assert one.sort(pl.all()).equals(other.sort(pl.all()))


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(written, tmp_path):
    shape, folder = written
    for name, seed in (("again", 2), ("other", 3)):
        shape.write_simulated(tmp_path / name, n_stays=8, seed=seed)
    for path in folder.rglob("*.csv.gz"):
        assert path.read_bytes() == (tmp_path / "again" / path.relative_to(folder)).read_bytes()
    chart = f"{shape.files['chartevents']}.csv.gz"
    assert (folder / chart).read_bytes() != (tmp_path / "other" / chart).read_bytes()


DIGESTS = {"mimic3": "e367e013e5c321ab", "mimic4": "64bf7bb56eacf07a"}


@pytest.mark.parametrize("name", SHAPES)
def test_a_seed_gives_the_tables_on_record(tmp_path, name):
    SHAPES[name].write_simulated(tmp_path / "raw", n_stays=60, seed=3)
    digest = hashlib.sha256()
    for place in sorted(SHAPES[name].files.values()):
        digest.update(gzip.decompress((tmp_path / "raw" / f"{place}.csv.gz").read_bytes()))
    assert digest.hexdigest()[:16] == DIGESTS[name]


def test_only_raw_tables_are_replaced(written, tmp_path):
    shape, _ = written
    out = tmp_path / "out"
    shape.write_simulated(out, n_stays=2)
    with pytest.raises(FileError, match="exists already"):
        shape.write_simulated(out, n_stays=2)
    shape.write_simulated(out, n_stays=3, parquet=True, overwrite=True)
    assert read(out, shape, "icustays").height == 3
    (out / "thesis.docx").touch()
    with pytest.raises(FileError, match="holds more than raw tables"):
        shape.write_simulated(out, n_stays=2, overwrite=True)


def test_nothing_to_write_and_no_place_for_it_are_refused(written, tmp_path):
    shape, folder = written
    with pytest.raises(SettingError, match="n_stays"):
        shape.write_simulated(tmp_path / "none", n_stays=0)
    with pytest.raises(SettingError, match="copies"):
        shape.write_copies(tmp_path / "none", source=folder, copies=0)
    with pytest.raises(FileError, match="existing folder"):
        shape.write_simulated(tmp_path / "a" / "b", n_stays=1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("profile", ["clean", "paper"])
def test_a_cohort_comes_of_mimic_iv_in_both_profiles(tmp_path, profile):
    MIMIC4_SHAPE.write_simulated(tmp_path / "raw", n_stays=40, seed=2, parquet=True)
    with contextlib.closing(open_source(tmp_path / "raw")) as source:
        cohort = build_cohort(extract(source, profile))
    assert cohort.settings["database"] == "mimic4"
    stays = to_trajectories(cohort)
    assert stays.n_stays > 11
    assert stays.n_decisions > 100
    assert len(stays.schema.dosed_features) == 2
    assert min(cohort.vasopressor.counts) > 0
