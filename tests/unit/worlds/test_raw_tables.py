"""Raw tables of either shape: written whole, copied, and never over something else."""

import gzip

import polars as pl
import pytest

from etips.errors import FileError, SettingError
from etips.worlds.mimic3_tables import MIMIC3_SHAPE
from etips.worlds.mimic4_tables import MIMIC4_SHAPE

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


def test_the_same_seed_gives_the_same_bytes(written, tmp_path):
    shape, folder = written
    shape.write_simulated(tmp_path / "again", n_stays=8, seed=2)
    for path in folder.rglob("*.csv.gz"):
        assert path.read_bytes() == (tmp_path / "again" / path.relative_to(folder)).read_bytes()


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


def test_nothing_to_write_is_refused(written, tmp_path):
    shape, folder = written
    with pytest.raises(SettingError, match="n_stays"):
        shape.write_simulated(tmp_path / "none", n_stays=0)
    with pytest.raises(SettingError, match="copies"):
        shape.write_copies(tmp_path / "none", source=folder, copies=0)
    with pytest.raises(FileError, match="existing folder"):
        shape.write_simulated(tmp_path / "a" / "b", n_stays=1)
