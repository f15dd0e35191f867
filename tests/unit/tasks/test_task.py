"""A task is data: text on its way to a worker, and a record once it is done."""

import json

import odd_work
import pytest
from odd_work import additions

from etips.errors import FileError, SettingError
from etips.runs.checkpoint import ForeignError
from etips.tasks.task import Task, do, finished, recorded


@pytest.mark.parametrize(
    "content", [b"{", b"[]", b'{"identity": "x", "found": {}}', b'{"found": 1, "seconds": 2}']
)
def test_a_damaged_record_is_refused_in_one_line(tmp_path, content):
    (tmp_path / "add-0").mkdir()
    (tmp_path / "add-0" / "done.json").write_bytes(content)
    with pytest.raises(FileError, match=r"done\.json: cannot be read\. Remove the folder"):
        finished(additions(1)[0], tmp_path / "add-0")


def test_a_task_is_text_on_its_way_and_the_same_after_it():
    task = Task("a-1", odd_work.Add((0.1, 3), device="cpu"), cost=2.5)
    assert Task.from_json(task.to_json()) == task
    assert Task.from_json(task.to_json()).identity == task.identity


@pytest.mark.parametrize(
    "home", ["odd_work:SECRET", "odd_work:additions", "odd_work:Nobody", "os:system"]
)
def test_what_is_no_work_is_not_called(home):
    text = json.dumps({"name": "a", "home": home, "work": {}, "cost": 1.0})
    with pytest.raises(SettingError, match=r"^task: must be a kind of work"):
        Task.from_json(text)


def test_a_finished_task_leaves_what_it_found_and_how_long_it_took(tmp_path):
    (task,) = additions(1)
    assert finished(task, tmp_path / "add-0") is None
    do(task, tmp_path / "add-0")
    record = recorded(task, tmp_path / "add-0")
    assert record.findings["sum"] == 10
    assert record.seconds >= 0


def test_a_folder_in_which_other_work_was_begun_is_refused(tmp_path):
    class StoppedError(Exception):
        pass

    class Begun(odd_work.Add):
        def run(self, folder, sharing):
            raise StoppedError

    with pytest.raises(StoppedError):
        do(Task("a", Begun((1,))), tmp_path / "a")
    with pytest.raises(FileError, match="holds other work"):
        do(Task("a", odd_work.Add((2,))), tmp_path / "a")
    do(Task("a", odd_work.Add((1,))), tmp_path / "a")


def test_checkpoints_of_another_version_are_refused_with_whom_they_were_lent_by(tmp_path):
    class Foreign(odd_work.Add):
        def run(self, folder, sharing):
            raise ForeignError(str(folder), "belongs to another run")

    with pytest.raises(FileError, match="by another version of etips or torch") as refusal:
        do(Task("b", Foreign(lent="a")), tmp_path / "b")
    assert "Remove b and a in" in refusal.value.fix
