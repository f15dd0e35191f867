"""The one place that writes: whole or not at all, for nobody else's eyes, beside the target."""

import errno
import json
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from etips.data import files
from etips.data.files import canonical, read_artifact, seal, write_artifact, write_file
from etips.errors import FileError

OLD, NEW = {"a.bin": b"old a", "b.bin": b"old b"}, {"a.bin": b"new a", "c.bin": b"new c"}


def save(folder, contents, **options):
    write_artifact(folder, contents, {"n": 1}, manifest_name="m.json", **options)


def contents(folder):
    """What an artifact holds, once it has passed every check."""
    read_artifact(folder, manifest_name="m.json")
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "m.json"}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_whole_and_replaces_an_earlier_one(tmp_path):
    path = tmp_path / "a.txt"
    write_file(path, b"one")
    write_file(path, lambda file: file.write(b"two") and None)
    assert path.read_bytes() == b"two"
    assert names(tmp_path) == ["a.txt"]


def test_an_artifact_is_written_with_its_manifest_and_read_back(tmp_path):
    save(tmp_path / "x", OLD)
    assert read_artifact(tmp_path / "x", manifest_name="m.json") == {"n": 1}
    assert contents(tmp_path / "x") == OLD
    assert names(tmp_path) == ["x"]


def test_the_manifest_lists_the_sha256_and_size_of_every_file(tmp_path):
    save(tmp_path / "x", {"a.bin": b"abc"})
    document = json.loads((tmp_path / "x" / "m.json").read_bytes())
    # SHA-256 of "abc" as published in FIPS 180-2, appendix B.1.
    abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert document["files"] == {"a.bin": {"sha256": abc, "bytes": 3}}


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


class Fails:
    """Lets a system call through until its N-th use, which finds the disk full."""

    def __init__(self, real, nth, counts=lambda *_: True):
        self.real, self.left, self.counts = real, nth, counts

    def __call__(self, *arguments, **options):
        self.left -= self.counts(*arguments)
        if self.left == 0:
            self.left = -1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self.real(*arguments, **options)


class Writes:
    """An open file whose writes may fail."""

    def __init__(self, file, failing):
        self.file, self.failing = file, failing
        self.flush, self.fileno = file.flush, file.fileno

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def write(self, data):
        return self.failing(self.file.write, data)


def full_disk(patch, call, nth):
    """Make the N-th use of a system call (opening: to write) find the disk full."""
    if call == "write":
        failing, real = Fails(lambda write, data: write(data), nth), os.fdopen
        patch.setattr(os, "fdopen", lambda *given: Writes(real(*given), failing))
    elif call == "open":
        patch.setattr(os, "open", Fails(os.open, nth, lambda _, flags, *__: flags & os.O_CREAT > 0))
    else:
        patch.setattr(os, call, Fails(getattr(os, call), nth))


# How often an artifact of two files and its manifest, written over another, uses each call.
CALLS = {"write": 3, "open": 3, "mkdir": 1, "fsync": 5, "rename": 2}


@pytest.mark.parametrize("call", CALLS)
def test_f9_each_write_failed_in_turn_leaves_a_whole_artifact_and_no_remains(
    tmp_path, monkeypatch, call
):
    """F9, and F3 for this module: fail the N-th call for every N until it is called no more."""
    for nth in range(1, CALLS[call] + 2):
        folder = tmp_path / f"{call}{nth}"
        save(folder, OLD)
        complaint = ""
        with monkeypatch.context() as patch:
            full_disk(patch, call, nth)
            try:
                save(folder, NEW, overwrite=True)
            except FileError as error:
                complaint = str(error)
        failed = nth <= CALLS[call]
        assert complaint.endswith(": cannot be written: No space left on device.") == failed
        # The last fsync is of the folder above, when the new artifact already stands there whole.
        swapped = not failed or (call, nth) == ("fsync", 5)
        assert contents(folder) == (NEW if swapped else OLD)
        assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("call", ["write", "open", "fsync", "replace"])
def test_f9_a_failed_write_leaves_the_earlier_file(tmp_path, monkeypatch, call):
    """F9: the same for a single file."""
    path = tmp_path / "x.txt"
    write_file(path, b"old")
    full_disk(monkeypatch, call, 1)
    with pytest.raises(FileError, match=r"x\.txt: cannot be written: No space left on device\.$"):
        write_file(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["x.txt"]


@pytest.mark.parametrize("call", ["write", "fsync", "rename"])
def test_the_first_write_of_an_artifact_failed_leaves_no_folder(tmp_path, monkeypatch, call):
    full_disk(monkeypatch, call, 1)
    with pytest.raises(FileError, match=r"x: cannot be written: No space left on device\.$"):
        save(tmp_path / "x", OLD)
    monkeypatch.undo()
    assert names(tmp_path) == []


def test_an_interrupt_between_the_two_renames_brings_the_old_artifact_back(tmp_path, monkeypatch):
    save(tmp_path / "x", OLD)
    real, count = os.rename, 0

    def interrupted(*arguments, **options):
        nonlocal count
        count += 1
        if count == 2:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(os, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(tmp_path / "x", NEW, overwrite=True)
    monkeypatch.undo()
    assert contents(tmp_path / "x") == OLD
    assert names(tmp_path) == ["x"]


def dead_process():
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_f9_remains_of_a_dead_process_are_swept_and_of_a_living_one_kept(tmp_path):
    """F9: only of this machine, only of this target, only if its process is gone."""
    host = socket.gethostname()
    stale_file = tmp_path / f".x.{host}.{dead_process()}.0a.part"
    stale_folder = tmp_path / f".x.{host}.{dead_process()}.0b.part"
    stale_file.write_bytes(b"half")
    stale_folder.mkdir()
    (stale_folder / "a.bin").write_bytes(b"half")
    kept = [
        f".x.{host}.{os.getpid()}.0c.part",  # alive
        f".x.{host}.{os.getppid()}.0d.part",  # alive
        f".x.elsewhere.{dead_process()}.0e.part",  # another machine's: cannot know
        f".y.{host}.{dead_process()}.0f.part",  # another target
        f".x.{host}.²³.0g.part",  # no process number
        f".x.{host}.{10**30}.0h.part",  # nor this
        f".x.{host}.{dead_process()}.0i.txt",  # not ours
    ]
    for name in kept:
        (tmp_path / name).write_bytes(b"half")
    save(tmp_path / "x", OLD)
    assert names(tmp_path) == sorted([*kept, "x"])


# ---- overwriting -------------------------------------------------------------------------------


def test_an_existing_place_is_refused_unless_overwriting_is_asked_for(tmp_path):
    save(tmp_path / "x", OLD)
    message = r"x: exists already\. Choose another place or overwrite\.$"
    with pytest.raises(FileError, match=message):
        save(tmp_path / "x", NEW)
    assert contents(tmp_path / "x") == OLD
    save(tmp_path / "x", NEW, overwrite=True)
    assert contents(tmp_path / "x") == NEW


@pytest.mark.parametrize("kind", ["empty folder", "folder of others", "file", "link", "dead link"])
def test_overwriting_never_removes_what_is_no_artifact(tmp_path, kind):
    save(tmp_path / "real", OLD)
    place = tmp_path / "x"
    if "folder" in kind:
        place.mkdir()
    if kind == "folder of others":
        (place / "thesis.txt").write_bytes(b"years of work")
    if kind == "file":
        place.write_bytes(b"years of work")
    if "link" in kind:
        place.symlink_to(tmp_path / ("real" if kind == "link" else "nowhere"))
    before = [(path, path.lstat().st_mtime_ns) for path in sorted(tmp_path.rglob("*"))]
    with pytest.raises(FileError, match=r"x: is not a folder with m\.json, so it stays\.$"):
        save(place, NEW, overwrite=True)
    assert [(path, path.lstat().st_mtime_ns) for path in sorted(tmp_path.rglob("*"))] == before


def test_a_parent_that_does_not_exist_is_refused_by_name(tmp_path):
    for write in (save, write_file):
        with pytest.raises(FileError, match=r"no: must be a folder that exists\.$"):
            write(tmp_path / "no" / "x", OLD if write is save else b"")


def test_a_file_cannot_replace_a_folder(tmp_path):
    (tmp_path / "x").mkdir()
    with pytest.raises(FileError, match=r"x: cannot be written: Is a directory\.$"):
        write_file(tmp_path / "x", b"")
    assert names(tmp_path) == ["x"]


def test_a_link_in_the_place_of_a_file_is_replaced_and_not_followed(tmp_path):
    (tmp_path / "target").write_bytes(b"precious")
    (tmp_path / "x").symlink_to(tmp_path / "target")
    write_file(tmp_path / "x", b"new")
    assert not (tmp_path / "x").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"precious"


def test_a_file_that_may_not_be_read_is_refused_in_one_line(tmp_path, monkeypatch):
    save(tmp_path / "x", OLD)

    def forbidden(self, *_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    for method, name in (("read_bytes", "m.json"), ("open", "a.bin")):
        with monkeypatch.context() as patch:
            patch.setattr(files.Path, method, forbidden)
            if method == "open":
                patch.setattr(files.Path, "read_bytes", lambda p: os.read(os.open(p, 0), 10**6))
            with pytest.raises(FileError, match=rf"{name}: cannot be read: Permission denied\.$"):
                read_artifact(tmp_path / "x", manifest_name="m.json")


# ---- the seal ----------------------------------------------------------------------------------


def test_there_is_one_spelling_of_a_document():
    assert canonical({"b": 1, "a": "ä"}) == b'{\n "a": "\\u00e4",\n "b": 1\n}\n'
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical({"a": float("nan")})


def test_f6_with_a_key_only_the_same_key_opens(tmp_path, monkeypatch):
    """F6: the key stands in ETIPS_SEAL_KEY; right, wrong, absent, and a key not in UTF-8."""
    changed = r"m\.json: was changed after it was written\. Make it anew\.$"
    kind = r"m\.json: was sealed with another kind of key; see ETIPS_SEAL_KEY\.$"
    for key in ("swordfish", b"\xff\xfe".decode(errors="surrogateescape")):
        monkeypatch.setenv("ETIPS_SEAL_KEY", key)
        save(tmp_path / "sealed", OLD, overwrite=(tmp_path / "sealed").exists())
        assert contents(tmp_path / "sealed") == OLD
        assert key.encode(errors="surrogateescape") not in (tmp_path / "sealed/m.json").read_bytes()
        monkeypatch.setenv("ETIPS_SEAL_KEY", "herring")
        with pytest.raises(FileError, match=changed):
            contents(tmp_path / "sealed")
        for nothing in ("", None):
            if nothing is None:
                monkeypatch.delenv("ETIPS_SEAL_KEY")
            else:
                monkeypatch.setenv("ETIPS_SEAL_KEY", nothing)
            with pytest.raises(FileError, match=kind):
                contents(tmp_path / "sealed")


def test_f6_with_a_key_an_artifact_sealed_without_is_refused(tmp_path, monkeypatch):
    """F6: otherwise whoever changes a file could seal it anew."""
    save(tmp_path / "x", OLD)
    monkeypatch.setenv("ETIPS_SEAL_KEY", "swordfish")
    with pytest.raises(FileError, match=r"m\.json: was sealed with another kind of key"):
        contents(tmp_path / "x")


def reseal(folder, change):
    path = folder / "m.json"
    document = json.loads(path.read_bytes())
    del document["seal"]
    change(document)
    path.write_bytes(canonical(seal(document)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("files"), r"m\.json: must list its files\.$"),
        (lambda d: d.update(files=[]), r"m\.json: must list its files\.$"),
        (lambda d: d["files"].update({"../a": 1}), r"\.\./a: is missing\.$"),
        (lambda d: d["files"].update({"a.bin": None}), r"a\.bin: was changed after it was written"),
        (lambda d: d["files"].pop("a.bin"), r"a\.bin: is not listed in the manifest\.$"),
    ],
)
def test_a_manifest_sealed_anew_cannot_reach_outside_nor_skip_a_file(tmp_path, change, message):
    save(tmp_path / "x", OLD)
    reseal(tmp_path / "x", change)
    with pytest.raises(FileError, match=message):
        contents(tmp_path / "x")


def deep(depth):
    return b'{"a": ' + b"[" * depth + b"]" * depth + b', "seal": "sha256:0"}'


@pytest.mark.parametrize(
    "manifest",
    [
        b"",
        b"[]",
        b"{}",
        b"nonsense",
        b"\xff\xfe\x00",
        b'{"seal": 1}',
        b'{"a": NaN, "seal": "sha256:0"}',
        b'{"a": 1e999, "seal": "sha256:0"}',
        b'{"a": ' + b"9" * 5000 + b', "seal": "sha256:0"}',
        b'{\n "seal": "sha256:\\u00e4"\n}\n',  # not ASCII, and spelt as we spell it
        *(deep(depth) for depth in (100, 900, 950, 960, 970, 980, 990, 1000, 5000, 100_000)),
    ],
    ids=lambda raw: raw[:12].decode(errors="replace") + str(len(raw)),
)
def test_a_manifest_that_is_none_is_refused_by_name(tmp_path, manifest):
    save(tmp_path / "x", OLD)
    (tmp_path / "x" / "m.json").write_bytes(manifest)
    with pytest.raises(FileError, match=r"m\.json: (is not|was changed|must)"):
        read_artifact(tmp_path / "x", manifest_name="m.json")


def test_a_manifest_too_large_to_be_one_is_not_even_read(tmp_path):
    save(tmp_path / "x", OLD)
    with (tmp_path / "x" / "m.json").open("wb") as file:
        file.truncate(17 * 2**20)
    with pytest.raises(FileError, match=r"m\.json: is too large for a manifest\.$"):
        contents(tmp_path / "x")


@pytest.mark.parametrize("next_step", ["read", "overwrite"])
def test_f2_an_artifact_left_aside_by_a_killed_overwrite_comes_back(tmp_path, next_step):
    folder = tmp_path / "a"
    write_artifact(folder, {"x": b"old"}, {}, manifest_name="m.json")
    folder.rename(tmp_path / f".a.{socket.gethostname()}.{dead_process()}.0000.aside")
    if next_step == "read":
        read_artifact(folder, manifest_name="m.json")
        assert (folder / "x").read_bytes() == b"old"
    else:
        write_artifact(folder, {"x": b"new"}, {}, manifest_name="m.json", overwrite=True)
        assert (folder / "x").read_bytes() == b"new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_what_stands_aside_goes_once_its_successor_is_in_place(tmp_path):
    folder = tmp_path / "a"
    write_artifact(folder, {"x": b"new"}, {}, manifest_name="m.json")
    (tmp_path / f".a.{socket.gethostname()}.{dead_process()}.0000.aside").mkdir()
    write_artifact(folder, {"x": b"newer"}, {}, manifest_name="m.json", overwrite=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]
