"""F4: a folder that one process at a time works in, whatever the race and whoever dies."""

import errno
import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from etips.errors import FileError
from etips.files.lock import LOCK_NAME, Lock

BUSY = r"work: is in use by another process\. Wait for it to end, or choose another folder\.$"

FORKS = """
import json, os, sys
from pathlib import Path
from etips.files.lock import Lock
from etips.errors import FileError

def fork(job):
    child = os.fork()
    if child == 0:
        try:
            os._exit(job())
        finally:
            os._exit(9)
    return child

def status(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

folder, number = Path(sys.argv[1]), int(sys.argv[2])
"""

HOLD = """
import subprocess, sys, time
from etips.files.lock import Lock
with Lock(sys.argv[1]):
    helper = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"],
                              stdin=subprocess.PIPE, close_fds=False)
    print(helper.pid, flush=True)
    time.sleep(600)
"""

RACES = (
    FORKS
    + """
def enter(go, done):
    os.read(go, 1)
    try:
        with Lock(folder):
            os.read(done, 1)  # until both have tried
            return 0
    except FileError:
        return 2

found = []
for _ in range(number):
    (go_in, go_out), (done_in, done_out) = os.pipe(), os.pipe()
    children = [fork(lambda: enter(go_in, done_in)) for _ in range(2)]
    os.write(go_out, b"gg")
    first, code = os.waitpid(-1, 0)
    os.write(done_out, b"d")
    (other,) = set(children) - {first}
    found.append([os.waitstatus_to_exitcode(code), status(other), len(os.listdir(folder))])
    for descriptor in (go_in, go_out, done_in, done_out):
        os.close(descriptor)
print(json.dumps(found))
"""
)

CROWD = (
    FORKS
    + """
witness = folder.parent / "inside"

def come_and_go():
    entered = 0
    while entered < number:
        try:
            with Lock(folder):
                os.close(os.open(witness, os.O_CREAT | os.O_EXCL))  # refuses if anyone is inside
                os.unlink(witness)
                entered += 1
        except FileError as error:
            assert "is in use" in str(error)
    return 0

children = [fork(come_and_go) for _ in range(4)]
print(json.dumps([status(child) for child in children] + [len(os.listdir(folder))]))
"""
)


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "work"
    made.mkdir()
    return made


def run(script, *arguments):
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def test_f4_a_second_holder_is_refused_at_once_in_one_line_about_the_folder(folder):
    """F4: even within the same process."""
    with Lock(folder):
        began = time.perf_counter()
        with pytest.raises(FileError, match=BUSY) as caught, Lock(folder):
            pass
        assert time.perf_counter() - began < 1
        assert str(os.getpid()) not in str(caught.value).replace(str(folder), "")
        with pytest.raises(FileError, match=BUSY), Lock(folder):  # the refusal changed nothing
            pass


def test_f4_a_lock_let_go_can_be_taken_again_and_leaves_no_file(folder):
    """F4: also after a failure inside."""
    lock = Lock(folder)
    for _ in range(2):
        with lock:
            assert [path.name for path in folder.iterdir()] == [LOCK_NAME]
        assert list(folder.iterdir()) == []
    with pytest.raises(KeyError), Lock(folder):
        raise KeyError
    assert list(folder.iterdir()) == []
    with Lock(folder):
        pass


def test_f4_the_lock_of_a_killed_process_is_taken_over(folder):
    """F4: though its file is still there, and though a program it started lives on."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True
    )
    helper = int(holder.stdout.readline())
    with pytest.raises(FileError, match=BUSY), Lock(folder):
        pass
    holder.send_signal(signal.SIGSTOP)
    os.kill(helper, 0)  # alive
    holder.kill()
    holder.wait()
    holder.stdout.close()
    assert (folder / LOCK_NAME).exists()
    with Lock(folder):
        pass
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("left", [b"", b"{", json.dumps({"process": os.getppid()}).encode()])
def test_f4_what_a_left_lock_file_says_does_not_matter(folder, left):
    """F4: its process number may belong to somebody else by now."""
    (folder / LOCK_NAME).write_bytes(left)
    with Lock(folder):
        assert json.loads((folder / LOCK_NAME).read_bytes())["process"] == os.getpid()


def test_f4_of_two_processes_that_race_exactly_one_wins(folder):
    """F4: fifty races; the loser ends first, refused, while the winner is inside."""
    assert run(RACES, folder, 50) == [[2, 0, 0]] * 50


def test_f4_processes_that_come_and_go_are_never_inside_together(folder):
    """F4: removing the file on leaving opens no gap."""
    assert run(CROWD, folder, 100) == [0, 0, 0, 0, 0]


def test_f9_the_lock_file_is_0600_under_any_umask(folder):
    """F9."""
    before = os.umask(0)
    try:
        with Lock(folder):
            assert stat.S_IMODE((folder / LOCK_NAME).stat().st_mode) == 0o600
    finally:
        os.umask(before)


def test_a_link_in_the_place_of_the_lock_is_not_followed(folder, tmp_path):
    (tmp_path / "precious").write_bytes(b"years of work")
    (folder / LOCK_NAME).symlink_to(tmp_path / "precious")
    with pytest.raises(FileError, match=r"work: cannot be locked: "), Lock(folder):
        pass
    assert (tmp_path / "precious").read_bytes() == b"years of work"


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with (
        pytest.raises(FileError, match=r"no: cannot be locked: No such file or directory\.$"),
        Lock(tmp_path / "no"),
    ):
        pass


def test_a_file_system_without_locks_is_refused_and_nothing_stays_open(folder, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with (
        pytest.raises(FileError, match=r"work: cannot be locked: No locks available\.$"),
        Lock(folder),
    ):
        pass
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_on_a_full_disk_the_folder_is_held_all_the_same(folder, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with Lock(folder), pytest.raises(FileError, match=BUSY), Lock(folder):
        pass


def test_a_lock_file_that_somebody_removed_and_another_took_is_left_to_them(folder):
    with Lock(folder):
        (folder / LOCK_NAME).unlink()
        (folder / LOCK_NAME).write_bytes(b"theirs")
    assert (folder / LOCK_NAME).read_bytes() == b"theirs"
