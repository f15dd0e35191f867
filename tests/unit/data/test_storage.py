"""Trajectories folders and tables on disk."""

import hashlib
import json
import os
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_cohorts import Cohort, cohorts
from stored_stays import same, simulated
from strategies import fingerprint, read_small, refusal_text, small_table

from etips.data import Coded, Schema, Trajectories, load_trajectories, read_table, write_table
from etips.errors import EtipsError, FileError
from etips.files.artifacts import seal
from etips.files.json_documents import canonical


@given(cohorts, st.booleans(), st.booleans())
def test_a_saved_cohort_loads_as_it_was(tmp_path_factory, cohort, logged, masked):
    data = replace(cohort, eligible=masked).make()
    data = data if logged else data.without_log()
    folder = tmp_path_factory.mktemp("saved") / "x"
    data.save(folder)
    same(load_trajectories(folder), data)


def test_missing_values_times_and_categories_survive_saving(tmp_path):
    data = read_small(
        small_table(
            t=np.array(["2101-01-01", "2101-01-02", "2101-01-03"] * 2, "datetime64[us]"),
            x=[None, 1.0, 2.0, None, None, 5.0],
            ward=[None, "icu", "er", "er", None, "er"],
            age=[None, None, None, 4.0, 4.0, 4.0],
        ),
        categorical=["ward"],
        static=["age"],
        missing="carry",
    )
    data.save(tmp_path / "x")
    same(load_trajectories(tmp_path / "x"), data)


def test_a_coded_sequence_and_the_truth_survive_saving(tmp_path):
    data = simulated()
    data.save(tmp_path / "x")
    again = load_trajectories(tmp_path / "x")
    same(again, data)
    assert isinstance(again.sequence, Coded)
    assert again.sequence.table.dtype == np.uint8
    assert np.array_equal(again.true_logging(), data.true_logging())
    assert np.array_equal(again.true_expected_loss(), data.true_expected_loss())
    used = len(np.unique(data.truth.code))
    assert len(again.truth.logging) == used  # rows of the truth that no step needs stay home
    assert sorted(path.name for path in (tmp_path / "x").iterdir()) == [
        "codebook.parquet",
        "schema.json",
        "stays.parquet",
        "steps.parquet",
        "truth.parquet",
    ]


def test_a_subset_saves_its_own_stays_only(tmp_path):
    data = simulated()
    data.subset([3, 1]).save(tmp_path / "x")
    again = load_trajectories(tmp_path / "x")
    assert again.stay.tolist() == data.stay[[3, 1]].tolist()
    same(again, data.subset([3, 1]))


def test_a_folder_of_another_format_or_version_is_refused(tmp_path):
    for change, value in (("format", "other"), ("version", 2)):
        folder = tmp_path / change
        Cohort(seed=1).make().save(folder)
        rewrite(folder, lambda d, change=change, value=value: d.update({change: value}))
        message = r"schema\.json: must be etips/trajectories, version 1\.$"
        with pytest.raises(FileError, match=message):
            load_trajectories(folder)


def rewrite(folder, change, **tables):
    """Change manifest and files and seal them anew, as a hostile hand without a key could."""
    for name, edit in tables.items():
        path = folder / f"{name}.parquet"
        table = edit(pq.read_table(path))
        path.unlink() if table is None else pq.write_table(table, path)
    document = json.loads((folder / "schema.json").read_bytes())
    del document["seal"]
    document["files"] = {
        path.name: {
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "bytes": path.stat().st_size,
        }
        for path in folder.glob("*.parquet")
    }
    change(document)
    (folder / "schema.json").write_bytes(canonical(seal(document)))


def replace_column(name, values):
    return lambda table: table.set_column(table.column_names.index(name), name, values(table))


def nothing(_document):
    pass


HOSTILE = {
    "no schema": (lambda d: d.pop("schema"), {}),
    "schema no object": (lambda d: d.update(schema=3), {}),
    "no logged": (lambda d: d.pop("logged"), {}),
    "unit no number": (lambda d: d.update(unit="x"), {}),
    "unit a list": (lambda d: d.update(unit=[1]), {}),
    "unit beyond counting": (lambda d: d.update(unit=10**400), {}),
    "codebook gone": (nothing, {"codebook": lambda t: None}),
    "truth gone": (nothing, {"truth": lambda t: None}),
    "steps gone": (nothing, {"steps": lambda t: None}),
    "a stay more": (nothing, {"stays": lambda t: pa.concat_tables([t, t.slice(0, 1)])}),
    "stays in another order": (nothing, {"stays": lambda t: t.take(list(range(len(t)))[::-1])}),
    "no stay": (nothing, {"stays": lambda t: t.slice(0, 0)}),
    "no step": (nothing, {"steps": lambda t: t.slice(0, 0)}),
    "a code beyond": (
        nothing,
        {"steps": replace_column("__code__", lambda t: pa.array([99] * len(t), pa.int32()))},
    ),
    "a truth beyond": (
        nothing,
        {"steps": replace_column("__truth__", lambda t: pa.array([-1] * len(t), pa.int32()))},
    ),
    "action text": (
        nothing,
        {"steps": replace_column("action", lambda t: pa.array(["kanarienvogel"] * len(t)))},
    ),
    "action beyond": (
        nothing,
        {"steps": replace_column("action", lambda t: pa.array([10**9] * len(t)))},
    ),
    "loss infinite": (
        nothing,
        {"steps": replace_column("loss", lambda t: pa.array([float("inf")] * len(t)))},
    ),
    "static text": (
        nothing,
        {"stays": replace_column("fixed0", lambda t: pa.array(["kanarienvogel"] * len(t)))},
    ),
    "codebook of text": (
        nothing,
        {"codebook": replace_column("vital0", lambda t: pa.array(["kanarienvogel"] * len(t)))},
    ),
    "a feature gone": (nothing, {"codebook": lambda t: t.drop_columns(["vital0"])}),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_folder_sealed_anew_around_nonsense_is_refused_and_never_a_traceback(tmp_path, case):
    change, tables = HOSTILE[case]
    simulated().save(tmp_path / "x")
    rewrite(tmp_path / "x", change, **tables)
    with pytest.raises(EtipsError) as caught:
        load_trajectories(tmp_path / "x")
    assert len(refusal_text(caught.value).splitlines()) == 1
    assert "kanarienvogel" not in refusal_text(caught.value)


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
