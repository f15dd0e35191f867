"""Full disks, interrupts and killed processes: what was there stays whole, and nothing is left."""

import errno
import os
import socket

import pytest
from artifacts_made import NEW, OLD, contents, dead_process, names, save

from etips.errors import FileError
from etips.files.artifacts import read_artifact, write_artifact
from etips.files.writing import write_file


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
