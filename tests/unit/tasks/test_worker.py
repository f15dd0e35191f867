"""What a worker says of the task it was given; its process is tested with `workers`."""

import odd_work
from odd_work import additions

from etips.errors import DataError
from etips.tasks.task import Task, finished
from etips.tasks.worker import perform_task
from etips.tasks.workers import Outcome


def test_a_task_that_is_done_is_on_record(tmp_path):
    (task,) = additions(1)
    assert perform_task(task.to_json(), tmp_path / "add-0") == Outcome("done")
    assert finished(task, tmp_path / "add-0")["sum"] == 10


def test_a_refusal_keeps_its_words_and_its_exit_code(tmp_path):
    outcome = perform_task(Task("bad", odd_work.Refuse()).to_json(), tmp_path / "bad")
    assert outcome.status == "refused"
    assert outcome.text.startswith("dose: must not be negative")
    assert outcome.code == DataError.exit_code


def test_p1_a_bug_comes_with_its_place_and_without_its_message(tmp_path):
    """P1: the message may quote a patient."""
    outcome = perform_task(Task("bad", odd_work.Broken()).to_json(), tmp_path / "bad")
    assert outcome.status == "broken"
    assert "KeyError" in outcome.text
    assert odd_work.SECRET not in outcome.text
