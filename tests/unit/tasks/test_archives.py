"""Folders as bytes, between machines that share no disk."""

import io
import zipfile

import pytest

from etips.errors import FileError
from etips.tasks.archives import pack, unpack


def test_an_archive_holds_whole_files_only_and_its_folders_alone(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    (here / "a" / "deep").mkdir(parents=True)
    there.mkdir()
    (here / "a" / "deep" / "x").write_bytes(b"\0\1")
    (here / "a" / "done.json").write_bytes(b"{}")
    (here / "a" / ".lock").write_bytes(b"held")
    (here / "a" / ".x.host.1.ab.part").write_bytes(b"half")
    (here / "b").write_bytes(b"not asked for")
    unpack(pack(here, ["a"]), there, ["a"], last="done.json")
    found = sorted(str(p.relative_to(there)) for p in there.rglob("*") if p.is_file())
    assert found == ["a/deep/x", "a/done.json"]
    assert (there / "a" / "deep" / "x").read_bytes() == b"\0\1"
    with pytest.raises(FileError, match="was sent a file that belongs elsewhere"):
        unpack(pack(here, ["a"]), there, ["b"])
    for name in ("a/../../x", "/a/x", "../a"):
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as files:
            files.writestr(name, b"evil")
        with pytest.raises(FileError, match="was sent a file that belongs elsewhere"):
            unpack(archive.getvalue(), there, ["a", "/", ".."])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["here", "there"]
