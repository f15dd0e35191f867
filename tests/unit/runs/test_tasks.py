"""Tasks are done once, each in its folder, by whatever does them; what is lost is done again."""

import io
import json
import os
import signal
import subprocess
import sys
import time
import traceback
import zipfile
from pathlib import Path

import odd_work
import pytest
import torch
from odd_work import additions

from etips.errors import DataError, EtipsError, FileError, ResourceError, SettingError
from etips.files.lock import Lock
from etips.runs import tasks
from etips.runs.archives import pack, unpack
from etips.runs.checkpoint import ForeignError
from etips.runs.tasks import BrokenTaskError, Clock, Task, do, recorded, run_tasks

SCRIPT = Path(odd_work.__file__)


def alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def test_every_task_is_done_once_and_found_by_its_name(tmp_path):
    run_tasks(additions(2), tmp_path / "study")
    mark = tmp_path / "study" / "add-1" / "more" / "numbers.txt"
    assert mark.read_text() == "[1, 10]"
    mark.write_text("as it was")
    found = run_tasks(additions(3), tmp_path / "study")
    assert [(name, value["sum"]) for name, value in found.items()] == [
        ("add-0", 10),
        ("add-1", 11),
        ("add-2", 12),
    ]
    assert mark.read_text() == "as it was"


def test_a_folder_in_which_other_work_was_done_or_begun_is_refused(tmp_path):
    run_tasks(additions(1), tmp_path)
    with pytest.raises(FileError, match="holds other work"):
        run_tasks([Task("add-0", odd_work.Add((5,)))], tmp_path)
    with pytest.raises(DataError):
        run_tasks([Task("begun", odd_work.Refuse())], tmp_path)
    with pytest.raises(FileError, match="holds other work"):
        run_tasks([Task("begun", odd_work.Add((5,)))], tmp_path)


@pytest.mark.parametrize(
    "content", [b"{", b"[]", b'{"identity": "x", "found": {}}', b'{"found": 1, "seconds": 2}']
)
def test_a_damaged_record_is_refused_in_one_line(tmp_path, content):
    (tmp_path / "add-0").mkdir()
    (tmp_path / "add-0" / "done.json").write_bytes(content)
    with pytest.raises(FileError, match=r"done\.json: cannot be read\. Remove the folder"):
        run_tasks(additions(1), tmp_path)


def test_checkpoints_of_another_version_are_refused_with_whom_they_were_lent_by(tmp_path):
    class Foreign(odd_work.Add):
        def run(self, folder):
            raise ForeignError(str(folder), "belongs to another run")

    with pytest.raises(FileError, match="by another version of etips or torch") as refusal:
        do(Task("b", Foreign(), needs=("a",)), tmp_path / "b")
    assert "Remove b and a in" in refusal.value.fix


def test_a_second_run_in_the_folder_refuses_at_once(tmp_path):
    with Lock(tmp_path), pytest.raises(FileError, match="is in use by another process"):
        run_tasks(additions(), tmp_path)
    assert not (tmp_path / "add-0").exists()


@pytest.mark.parametrize("name", ["", "..", "a/b", "two words", "ä"])
def test_a_name_that_could_be_another_place_is_refused(tmp_path, name):
    with pytest.raises(SettingError, match="must be named by letters, digits and hyphens"):
        run_tasks([Task(name, odd_work.Add())], tmp_path)


def test_two_tasks_of_one_name_and_no_jobs_are_refused(tmp_path):
    with pytest.raises(SettingError, match="must have a name of its own"):
        run_tasks(additions(1) * 2, tmp_path)
    with pytest.raises(SettingError, match=r"^jobs: must be at least 1"):
        run_tasks(additions(1), tmp_path, jobs=0)


def test_two_processes_find_what_one_finds_in_the_order_of_the_tasks(tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(tasks, "_IDLE", 1.0)
    here = run_tasks(additions(), tmp_path / "here")
    there = run_tasks(additions(), tmp_path / "there", jobs=2)
    assert [(n, f["sum"]) for n, f in there.items()] == [(n, f["sum"]) for n, f in here.items()]
    assert os.getpid() not in {f["process"] for f in there.values()}
    assert {f["threads"] for f in there.values()} == {max(1, (os.cpu_count() or 1) // 2)}
    wait_for(lambda: not any(alive(f["process"]) for f in there.values()))  # idle workers end


def test_a_lost_worker_has_its_task_done_again_and_one_always_lost_is_given_up_by_name(
    tmp_path, monkeypatch
):
    found = run_tasks([*additions(2), Task("mortal", odd_work.Die(1))], tmp_path, jobs=2)
    assert found["mortal"] == {"deaths": 1}
    assert found["add-1"]["sum"] == 11
    monkeypatch.setattr(tasks, "TRIES", 1)  # each loss starts all workers anew
    with pytest.raises(ResourceError) as refusal:
        run_tasks([Task("doomed", odd_work.Die(99))], tmp_path, jobs=2)
    assert str(refusal.value).startswith("task doomed: lost its worker 1 times")
    assert refusal.value.exit_code == 3


def test_a_refusal_comes_back_as_the_same_line_and_code_and_leaves_what_was_done(tmp_path):
    first, second = additions(2)
    works = [first, Task("bad", odd_work.Refuse()), second]
    with pytest.raises(EtipsError) as here:
        run_tasks(works, tmp_path / "here")
    assert recorded(first, tmp_path / "here" / "add-0").findings["sum"] == 10
    assert recorded(second, tmp_path / "here" / "add-1") is None
    run_tasks([first], tmp_path / "there", jobs=2)
    with pytest.raises(EtipsError) as there:
        run_tasks(works, tmp_path / "there", jobs=2)
    assert str(there.value) == str(here.value)
    assert there.value.exit_code == here.value.exit_code
    assert recorded(first, tmp_path / "there" / "add-0").findings["sum"] == 10


def test_p1_a_bug_shows_where_it_is_but_no_value_and_what_is_printed_is_no_output(tmp_path, capfd):
    """P1: a message may quote a patient; the traceback of a worker comes without."""
    works = [Task("loud", odd_work.Noisy()), Task("bad", odd_work.Broken())]
    with pytest.raises(BrokenTaskError) as bug:
        run_tasks(works, tmp_path, jobs=2)
    shown = "".join(traceback.format_exception(bug.value))
    assert "task bad broke" in shown
    assert "in run" in shown
    assert "KeyError" in shown
    assert odd_work.SECRET not in shown
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_f4_stopped_or_killed_it_takes_its_workers_along(tmp_path, how):
    """F4: nothing works on in a folder that another command may take; a dead one's lock is free."""
    study = subprocess.Popen(
        [sys.executable, str(SCRIPT), str(tmp_path)], stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        asleep = [tmp_path / f"nap-{i}" / "asleep.txt" for i in range(2)]
        wait_for(lambda: all(path.exists() for path in asleep))
        sleepers = [int(path.read_text()) for path in asleep]
        with pytest.raises(FileError, match="is in use by another process"):
            run_tasks(additions(1), tmp_path)
        if how is signal.SIGINT:
            os.killpg(study.pid, how)  # as a terminal does
        else:
            study.send_signal(how)
        _, said = study.communicate(timeout=60)
        wait_for(lambda: not any(alive(sleeper) for sleeper in sleepers), seconds=10)
    finally:
        study.kill()
    assert study.returncode != 0
    if how is signal.SIGINT:
        assert said.count(b"\nKeyboardInterrupt") == 1  # ours alone, not the workers'
    with Lock(tmp_path):
        pass


@pytest.mark.parametrize(("cores", "jobs"), [(None, 1), (1, 1), (2, 2), (64, 4)])
def test_left_to_itself_a_cpu_does_a_task_a_core_up_to_four(cores, jobs, monkeypatch):
    monkeypatch.setattr(tasks.os, "cpu_count", lambda: cores)
    assert tasks.jobs_for("cpu") == jobs


def test_left_to_itself_a_gpu_does_one_task_after_the_other(monkeypatch):
    monkeypatch.setattr(tasks, "choose_device", lambda _: torch.device("cuda"))
    assert tasks.jobs_for("auto") == 1


def test_without_ray_a_cluster_is_refused_with_the_remedy(tmp_path, monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(tasks, "import_module", absent)
    with pytest.raises(SettingError, match=r"^cluster: needs ray\. .*pip install 'etips\[ray\]'"):
        run_tasks(additions(1), tmp_path, cluster="local")


def test_progress_names_what_is_at_work_and_how_long_it_may_take(tmp_path):
    for number, task in enumerate(additions(2)):
        (tmp_path / task.name).mkdir()
        record = {"identity": task.identity, "found": {}, "seconds": 200.0 * (number + 1)}
        (tmp_path / task.name / "done.json").write_text(json.dumps(record))
    told = []
    clock = Clock(10, lambda what, share: told.append((what, share)))
    run_tasks(additions(4), tmp_path, clock=clock)
    assert told[0] == ("add-2; about 40 min left", 0.2)  # 8 to come, 300 s each
    assert [share for _, share in told] == [0.2, 0.3, 0.3, 0.4]


def test_cheap_tasks_move_the_bar_as_little_as_the_guess():
    told = []
    clock = Clock(10.0, lambda what, share: told.append((what, share)), span=(0.5, 1.0))
    clock.done("cheap", 0.1, 1.0)
    clock.began("dear")
    clock.done("dear", 9.9, 500.0)
    assert told == [
        ("about 100 s left", pytest.approx(0.505)),
        ("dear; about 100 s left", pytest.approx(0.505)),
        ("", 1.0),
    ]


def test_what_was_expected_counts_until_tasks_have_shown_the_pace(monkeypatch):
    told, now = [], [0.0]
    monkeypatch.setattr(tasks.time, "perf_counter", lambda: now[0])
    clock = Clock(100.0, lambda what, share: told.append(what))
    clock.expect(1000.0)
    clock.began("a")
    for now[0], cost, seconds in ((100.0, 10, 150.0), (200.0, 10, 150.0), (500.0, 30, 450.0)):
        clock.done("a", cost, seconds)
    # At half of the trusted share the pace (1200 s) and what was expected (800 s) count alike.
    assert told == [
        "a; about 17 min left",
        "about 17 min left",
        "about 17 min left",
        "about 12 min left",
    ]


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
