"""The one place that writes: whole or not at all, for nobody else's eyes, beside the target."""

import os
import stat
from pathlib import Path

import pytest
from artifacts_made import NEW, OLD, contents, names, save

from etips.errors import FileError
from etips.files.writing import write_file


def test_a_file_is_written_whole_and_replaces_an_earlier_one(tmp_path):
    path = tmp_path / "a.txt"
    write_file(path, b"one")
    write_file(path, lambda file: file.write(b"two") and None)
    assert path.read_bytes() == b"two"
    assert names(tmp_path) == ["a.txt"]


# ---- F9: for nobody else's eyes, beside the target ---------------------------------------------


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


def test_f9_files_are_0600_and_folders_0700_whatever_the_umask(tmp_path, umask):
    """F9: also while they are being written."""
    seen = []

    def watch(file):
        for path in tmp_path.rglob("*"):
            seen.append(("folder" if path.is_dir() else "file", mode(path)))
        file.write(b"x")

    write_file(tmp_path / "alone", watch)
    save(tmp_path / "x", {"a.bin": watch})
    assert len(seen) == 4  # .alone.part; alone, .x.part and .x.part/a.bin
    assert {found for kind, found in seen if kind == "file"} == {0o600}
    assert {found for kind, found in seen if kind == "folder"} == {0o700}
    assert mode(tmp_path / "alone") == 0o600
    assert mode(tmp_path / "x") == 0o700
    assert {mode(path) for path in (tmp_path / "x").iterdir()} == {0o600}


def test_f9_unfinished_work_stands_beside_its_target_and_nowhere_else(tmp_path, monkeypatch):
    """F9: every file and folder made is under the target's own parent, and none is left."""
    made = []
    real_open, real_mkdir = os.open, os.mkdir

    def spy_open(path, flags, *rest, **options):
        if flags & os.O_CREAT:
            made.append(Path(path))
        return real_open(path, flags, *rest, **options)

    def spy_mkdir(path, *rest, **options):
        made.append(Path(path))
        return real_mkdir(path, *rest, **options)

    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setattr(os, "open", spy_open)
    monkeypatch.setattr(os, "mkdir", spy_mkdir)
    write_file(home / "alone", b"x")
    save(home / "x", OLD)
    save(home / "x", NEW, overwrite=True)
    monkeypatch.undo()
    assert len(made) == 1 + 4 + 4
    assert all(home in path.parents for path in made)
    assert names(home) == ["alone", "x"]
    assert names(tmp_path) == ["home"]


def test_f9_a_content_that_fails_leaves_nothing_behind(tmp_path):
    def refuse(file):
        file.write(b"half")
        raise KeyError("a bug in the caller")

    save(tmp_path / "x", OLD)
    for write in (
        lambda: write_file(tmp_path / "alone", refuse),
        lambda: save(tmp_path / "y", {"a.bin": refuse}),
        lambda: save(tmp_path / "x", {"a.bin": refuse}, overwrite=True),
    ):
        with pytest.raises(KeyError):
            write()
    assert names(tmp_path) == ["x"]
    assert contents(tmp_path / "x") == OLD


def test_a_parent_that_does_not_exist_is_refused_by_name(tmp_path):
    for write in (save, write_file):
        with pytest.raises(FileError, match=r"no: must be a folder that exists\.$"):
            write(tmp_path / "no" / "x", OLD if write is save else b"")


def test_a_link_in_the_place_of_a_file_is_replaced_and_not_followed(tmp_path):
    (tmp_path / "target").write_bytes(b"precious")
    (tmp_path / "x").symlink_to(tmp_path / "target")
    write_file(tmp_path / "x", b"new")
    assert not (tmp_path / "x").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"precious"
