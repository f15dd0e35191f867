"""Tasks are done once, each in its folder, and the folder belongs to one process at a time."""

import json

import odd_work
import pytest
import torch
from odd_work import additions

from etips.errors import DataError, FileError, SettingError
from etips.files.lock import Lock
from etips.tasks import runner
from etips.tasks.runner import run_tasks
from etips.tasks.task import Task, finished


def test_every_task_is_done_and_found_by_its_name(tmp_path):
    found = run_tasks(additions(), tmp_path / "study")
    assert [(name, value["sum"]) for name, value in found.items()] == [
        ("add-0", 10),
        ("add-1", 11),
        ("add-2", 12),
    ]
    assert (tmp_path / "study" / "add-2" / "more" / "numbers.txt").read_text() == "[2, 10]"


def test_what_is_done_is_not_done_again(tmp_path):
    run_tasks(additions(2), tmp_path)
    mark = tmp_path / "add-1" / "more" / "numbers.txt"
    mark.write_text("as it was")
    found = run_tasks(additions(3), tmp_path)
    assert mark.read_text() == "as it was"
    assert list(found) == ["add-0", "add-1", "add-2"]


def test_a_folder_with_other_work_is_refused(tmp_path):
    run_tasks(additions(1), tmp_path)
    with pytest.raises(FileError, match="holds other work"):
        run_tasks([Task("add-0", odd_work.Add((5,)))], tmp_path)


def test_a_refusal_leaves_what_was_done_before_it(tmp_path):
    first, second = additions(2)
    with pytest.raises(DataError, match="must not be negative"):
        run_tasks([first, Task("bad", odd_work.Refuse()), second], tmp_path)
    assert finished(first, tmp_path / "add-0")["sum"] == 10
    assert finished(second, tmp_path / "add-1") is None


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


def test_progress_names_what_is_at_work_and_how_long_it_may_take(tmp_path):
    for number, task in enumerate(additions(2)):
        (tmp_path / task.name).mkdir()
        record = {"identity": task.identity, "found": {}, "seconds": 200.0 * (number + 1)}
        (tmp_path / task.name / "done.json").write_text(json.dumps(record))
    told = []
    run_tasks(
        additions(4), tmp_path, later=6, report=lambda what, share: told.append((what, share))
    )
    assert told[0] == ("add-2; about 40 min left", 0.2)  # 8 to come, 300 s each
    assert [share for _, share in told] == [0.2, 0.3, 0.3, 0.4]


def test_without_ray_a_cluster_is_refused_with_the_remedy(tmp_path, monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(runner, "import_module", absent)
    with pytest.raises(SettingError, match=r"^cluster: needs ray\. .*pip install 'etips\[ray\]'"):
        run_tasks(additions(1), tmp_path, cluster="local")


@pytest.mark.parametrize(("cores", "jobs"), [(None, 1), (1, 1), (2, 2), (64, 4)])
def test_left_to_itself_a_cpu_does_a_task_a_core_up_to_four(cores, jobs, monkeypatch):
    monkeypatch.setattr(runner.os, "cpu_count", lambda: cores)
    assert runner.jobs_for("cpu") == jobs


def test_left_to_itself_a_gpu_is_shared(monkeypatch):
    monkeypatch.setattr(runner, "choose_device", lambda _: torch.device("cuda"))
    assert runner.jobs_for("auto") > 1
    assert runner._is_for_gpu(Task("a", odd_work.Add(device="auto")))


def test_waves_are_one_where_tasks_can_wait_for_their_lenders(monkeypatch):
    first, second, third = additions(3)
    waves = [[first, second], [third]]
    assert runner.join_waves(waves, cluster=None) == [[first, second, third]]
    assert runner.join_waves([], cluster=None) == []
    assert runner.join_waves(waves, cluster="local") == waves
    monkeypatch.setattr(runner, "choose_device", lambda _: torch.device("cuda"))
    on_gpu = Task("trains", odd_work.Add(device="auto"))
    assert runner.join_waves([*waves, [on_gpu]], cluster=None) == [*waves, [on_gpu]]
