"""Trajectories folders and long tables as they are written: whole, private, plain Parquet."""

import os

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_cohorts import Cohort, cohorts
from stored_stays import same, simulated
from strategies import fingerprint

from etips.data import Schema, Trajectories, load_trajectories, read_table, write_table
from etips.errors import FileError


def test_the_files_can_be_read_without_etips(tmp_path):
    """Architecture 5.3: plain Parquet, a row a step and a row a stay, null where not known."""
    data = Cohort(seed=3).make()
    data.save(tmp_path / "x")
    steps = pq.read_table(tmp_path / "x" / "steps.parquet")
    assert steps.column_names == [
        "stay", "step", "vital0", "vital1", "action", "loss", "propensity",
    ]  # fmt: skip
    assert steps["action"].null_count == (data.action == -1).sum()
    stays = pq.read_table(tmp_path / "x" / "stays.parquet")
    assert stays.column_names == ["stay", "fixed0", "group"]
    assert stays.num_rows == data.n_stays


def test_more_rows_than_are_written_together_survive(tmp_path):
    n = 300_000
    data = Trajectories(
        sequence=np.arange(n, dtype=np.float32)[:, None],
        offsets=np.arange(0, n + 1, 3),
        schema=Schema(sequence=("x",), n_actions=2),
        action=np.arange(n) % 2,
        loss=np.arange(n) / 7,
    )
    data.save(tmp_path / "x")
    same(load_trajectories(tmp_path / "x"), data)
    write_table(data, tmp_path / "x.parquet")
    assert fingerprint(read_table(tmp_path / "x.parquet", like=data.schema)) == fingerprint(data)


@given(cohorts, st.sampled_from([".csv", ".csv.gz", ".parquet"]))
def test_a_written_table_reads_back_to_the_same_decisions(tmp_path_factory, cohort, suffix):
    data = cohort.make()
    path = tmp_path_factory.mktemp("written") / f"x{suffix}"
    write_table(data, path)
    again = read_table(path, like=data.schema)
    assert fingerprint(again) == fingerprint(data)
    assert again.schema == data.schema


def test_a_coded_sequence_is_written_to_a_table_as_it_reads(tmp_path):
    data = simulated()
    write_table(data, tmp_path / "x.csv")
    again = read_table(tmp_path / "x.csv", like=data.schema)
    assert np.array_equal(again.sequence, data.sequence[:])
    assert again.truth is None


def test_the_same_stays_give_the_same_bytes_at_any_time(tmp_path, monkeypatch):
    for name, now in (("a", 1_000_000_000), ("b", 2_000_000_000)):
        monkeypatch.setattr("gzip.time.time", lambda now=now: now)
        for suffix in ("csv.gz", "parquet"):
            write_table(Cohort(seed=1).make(), tmp_path / f"{name}.{suffix}")
    for suffix in ("csv.gz", "parquet"):
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


def test_stays_drawn_with_repetition_are_not_written(tmp_path):
    data = Cohort(seed=1).make().subset([0, 1, 0])
    message = r": needs every stay once; these were drawn with repetition\.$"
    with pytest.raises(FileError, match=message):
        data.save(tmp_path / "x")
    with pytest.raises(FileError, match=message):
        write_table(data, tmp_path / "x.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_table_of_another_kind_is_not_written(tmp_path):
    with pytest.raises(FileError, match=r"x\.xlsx: must end in \.csv, \.csv\.gz or \.parquet\.$"):
        write_table(Cohort(seed=1).make(), tmp_path / "x.xlsx")


def test_overwriting_replaces_the_whole_folder(tmp_path):
    simulated().save(tmp_path / "x")
    with pytest.raises(FileError, match=r"x: exists already\."):
        Cohort(seed=1).make().save(tmp_path / "x")
    Cohort(seed=1).make().save(tmp_path / "x", overwrite=True)
    same(load_trajectories(tmp_path / "x"), Cohort(seed=1).make())


def test_f9_saved_folders_and_written_tables_are_for_nobody_else(tmp_path):
    """F9 at the level of a user: `save` and `write_table` under umask 0."""
    before = os.umask(0)
    try:
        simulated().save(tmp_path / "x")
        for suffix in (".csv", ".csv.gz", ".parquet"):
            write_table(simulated(), tmp_path / f"x{suffix}")
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o777 for path in tmp_path.rglob("*") if path.is_file()}
    assert modes == {0o600}
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o700
    assert not list(tmp_path.rglob("*.part"))
