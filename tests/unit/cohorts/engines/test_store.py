"""Large results on disk: kept for a build of the same key, dropped for any other."""

import contextlib
import resource

import duckdb
import polars as pl
import pytest

from etips.cohorts.engines.store import Scratch, Store, size_in_bytes
from etips.errors import FileError, ResourceError


def store(keep):
    return Store(duckdb.connect(), Scratch(keep=keep, memory_limit="500MB"))


def put(opened, name="rows", **columns):
    opened.put(name, pl.DataFrame(columns or {"a": [1, 2]}).to_arrow(), append=False)
    opened.mark(name)


def test_what_was_stored_whole_is_there_for_the_same_key(tmp_path):
    first = store(tmp_path / "work")
    first.begin("key")
    put(first, a=[3, 4])
    first.close(keep=True)
    second = store(tmp_path / "work")
    second.begin("key")
    assert second.has("rows")
    assert sorted(second.rows("rows")["a"]) == [3, 4]
    second.close(keep=False)
    assert list(tmp_path.iterdir()) == []


def test_another_key_begins_anew(tmp_path):
    first = store(tmp_path / "work")
    first.begin("key")
    put(first)
    first.close(keep=True)
    second = store(tmp_path / "work")
    second.begin("other")
    assert not second.has("rows")
    with pytest.raises(duckdb.Error):
        second.rows("rows")
    second.close(keep=False)


@pytest.mark.parametrize(
    ("text", "size"), [("2GB", 2e9), (" 64 MiB", 64e6), ("1.5tb", 1.5e12), ("2", None), ("", None)]
)
def test_sizes_are_understood_as_duckdb_does(text, size):
    found = size_in_bytes(text)
    assert found == size if size else found != found


def test_an_unreadable_file_is_begun_anew(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "store.duckdb").write_bytes(b"not a database, by no means one")
    opened = store(tmp_path / "work")
    opened.begin("key")
    put(opened)
    opened.close(keep=False)


def test_the_folder_is_private_and_no_link_is_followed(tmp_path):
    opened = store(tmp_path / "work")
    assert (tmp_path / "work").stat().st_mode & 0o077 == 0
    opened.close(keep=False)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileError, match="must not be a link"):
        store(tmp_path / "link")


@contextlib.contextmanager
def full_disk(limit):
    """No file of this process may grow beyond a size, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("limit", [0, 40_000])
def test_a_full_disk_is_one_line_from_the_first_write_on_and_leaves_nothing(tmp_path, limit):
    def work():
        with contextlib.closing(store(tmp_path / "work")) as opened:
            opened.begin("key")
            put(opened, a=[str(i) * 50 for i in range(100_000)])

    with full_disk(limit), pytest.raises(ResourceError, match="disk or memory is spent") as caught:
        work()
    assert caught.value.exit_code == 3
    assert list(tmp_path.iterdir()) == []


def test_spent_memory_is_one_line_and_exit_code_3(tmp_path):
    opened = store(tmp_path / "work")
    opened.connection.execute("SET memory_limit = '20MB'")
    opened.connection.execute("SET temp_directory = ''")
    with pytest.raises(ResourceError, match="disk or memory is spent") as caught:
        put(opened, a=[str(i) * 50 for i in range(400_000)])
    assert caught.value.exit_code == 3
    opened.close(keep=False)
