"""F2 and F4: a run killed at any moment and started again ends as if nothing had happened."""

import json
import logging
import subprocess
import sys

import killed_runs
import pytest
import torch
from killed_runs import LONG, RESULT, SHORT, left_in, toy, work

from etips.errors import FileError
from etips.runs.run import read_log


def start(job, folder, *numbers):
    command = [sys.executable, killed_runs.__file__, job, str(folder), *map(str, numbers)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def require_as_if_nothing_had_happened(found):
    assert found["whole"]["status"] == 0
    assert found["whole"]["files"] == ["log.jsonl", RESULT]
    for end in found["ends"]:
        assert end == found["whole"]


def test_f2_ten_kills_at_random_moments_leave_the_weights_byte_identical(tmp_path):
    """F2: and identical to those of a process that was never killed, here."""
    found = start("at_random", tmp_path, 10, 0)
    require_as_if_nothing_had_happened(found)
    (tmp_path / "here").mkdir()
    work(tmp_path / "here" / "run", toy(), LONG)
    assert (tmp_path / "here" / "run" / RESULT).read_bytes().hex() == found["whole"]["weights"]


@pytest.mark.slow
def test_f2_a_hundred_kills_at_random_moments_leave_the_weights_byte_identical(tmp_path):
    """F2: the nightly size."""
    require_as_if_nothing_had_happened(start("at_random", tmp_path, 100, 1))


def test_f2_a_kill_before_any_call_that_changes_the_disk_is_made_good(tmp_path):
    """F2: opening, flushing, renaming, removing, of lock, checkpoints, log and result."""
    found = start("at_every_call", tmp_path)
    assert found["last"] == 0  # every call had its turn
    assert len(found["ends"]) > 30
    require_as_if_nothing_had_happened(found)


def test_f4_of_two_processes_in_one_run_folder_the_second_refuses_and_does_no_harm(tmp_path):
    """F4: fifty races."""
    for statuses, inside, unharmed, seconds in start("races", tmp_path, 50)["races"]:
        assert statuses == [2, 0]  # in the order they ended: refused while the other one stays
        assert inside == ["in"]
        assert unharmed
        assert seconds < 5


class StoppedError(Exception):
    pass


def stop_in_the_second_stage(folder, prepared, monkeypatch):
    """What a kill there leaves, made without one."""
    real = killed_runs.Run.stage

    def stage(run, name, *rest):
        found = real(run, name, *rest)
        keep = found.keep

        def counting(state):
            keep(state)
            if name == "policy" and state.epoch == 2:
                raise StoppedError

        found.keep = counting
        return found

    with monkeypatch.context() as patch:
        patch.setattr(killed_runs.Run, "stage", stage)
        with pytest.raises(StoppedError):
            work(folder, prepared, LONG)


@pytest.fixture(scope="module")
def prepared():
    return toy()


@pytest.fixture(scope="module")
def whole(prepared, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "run"
    work(folder, prepared, LONG)
    return folder


def test_f2_a_resumed_run_goes_on_where_it_stood_and_logs_each_epoch_once(
    tmp_path, prepared, whole, monkeypatch
):
    """F2: it must not get there by starting over."""
    folder = tmp_path / "run"
    stop_in_the_second_stage(folder, prepared, monkeypatch)
    assert left_in(folder) == [
        "checkpoint",
        "checkpoint/policy.safetensors",
        "checkpoint/propensity.safetensors",
        "log.jsonl",
    ]
    trained = []
    real = killed_runs.train
    monkeypatch.setattr(
        killed_runs, "train", lambda *a, **k: trained.append(k["state"].epoch) or real(*a, **k)
    )
    work(folder, prepared, LONG)
    assert trained == [2]  # the first stage was skipped, the second taken up in its third epoch
    assert (folder / RESULT).read_bytes() == (whole / RESULT).read_bytes()
    epochs = [
        [(line["stage"], line["epoch"], line["held_out"]) for line in log if "epoch" in line]
        for log in (read_log(folder / "log.jsonl"), read_log(whole / "log.jsonl"))
    ]
    assert epochs[0] == epochs[1]
    assert len(epochs[0]) == 8


@pytest.mark.parametrize("damage", ["flipped", "truncated", "empty"])
@pytest.mark.parametrize("stage", ["propensity", "policy"])
def test_f2_a_damaged_checkpoint_is_reported_in_one_line_and_done_without(
    tmp_path, prepared, whole, monkeypatch, caplog, stage, damage
):
    """F2, F6: no kill can leave one; a failing disk can. The stage starts over, the bytes agree."""
    folder = tmp_path / "run"
    stop_in_the_second_stage(folder, prepared, monkeypatch)
    path = folder / "checkpoint" / f"{stage}.safetensors"
    raw = bytearray(path.read_bytes())
    raw[-3] ^= 1
    path.write_bytes({"flipped": raw, "truncated": raw[:-9], "empty": b""}[damage])
    with caplog.at_level(logging.WARNING, logger="etips"):
        work(folder, prepared, LONG)
    (record,) = caplog.records
    assert record.getMessage() == (
        f"{path}: was changed after it was written. Stage {stage} starts from its beginning."
    )
    notes = [line for line in read_log(folder / "log.jsonl") if "event" in line]
    assert {"stage": stage, "event": "checkpoint damaged, started from the beginning"} in notes
    assert (folder / RESULT).read_bytes() == (whole / RESULT).read_bytes()
    assert left_in(folder) == ["log.jsonl", RESULT]


def test_a_checkpoint_of_other_data_or_settings_is_refused_and_stays(
    tmp_path, prepared, monkeypatch
):
    folder = tmp_path / "run"
    stop_in_the_second_stage(folder, prepared, monkeypatch)
    before = {path: path.read_bytes() for path in folder.rglob("*.safetensors")}
    rule = (
        r"policy\.safetensors: belongs to a run with other data, settings, device or version of "
        r"torch\. Give it the same, choose another folder, or remove checkpoint/\.$"
    )
    data = prepared.data
    fewer = killed_runs.prepare(
        data.subset(slice(0, 299)), n_folds=2, seed=0, device=torch.device("cpu")
    )
    for other in ((prepared, SHORT), (fewer, LONG)):
        with pytest.raises(FileError, match=rule) as caught:
            work(folder, *other)
        assert "\n" not in str(caught.value)
        assert {path: path.read_bytes() for path in folder.rglob("*.safetensors")} == before
    assert not (folder / ".lock").exists()
