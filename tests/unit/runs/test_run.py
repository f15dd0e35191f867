"""Run folders: what a resumed run finds, what is refused, and what the log says."""

import json
import math
import stat
from dataclasses import replace

import pytest
import torch

from etips.errors import DataError, FileError, SettingError
from etips.learn.training.epoch_report import EpochReport
from etips.learn.training.settings import Settings
from etips.learn.training.state import State
from etips.models.bundle import Bundle
from etips.runs import run as runs
from etips.runs.run import Run, RunLog, read_log

SETTINGS = Settings(epochs=3)


def at(start, epoch=1):
    """Where the training of `start` stands after some epochs."""
    state = State.start(start)
    state.epoch = epoch
    return state


def after(epoch, stage, held_out):
    """What a training tells after an epoch."""
    return EpochReport(epoch, 9, loss=0.25, held_out=held_out, seconds_left=3.0, stage=stage)


# ---- what a resumed run finds ------------------------------------------------------------------


def test_a_fresh_stage_has_nothing_a_kept_one_its_state_a_finished_one_its_networks(folder, start):
    with Run(folder, "id", every=0) as run:
        stage = run.stage("propensity", start, SETTINGS)
        assert stage.state is stage.networks is None
        stage.keep(at(start, 12))
    with Run(folder, "id") as run:
        stage = run.stage("propensity", start, SETTINGS)
        assert stage.networks is None
        assert stage.state.epoch == 12
        done = stage.finish(start)
    with Run(folder, "id") as run:
        stage = run.stage("propensity", start, SETTINGS)
        assert stage.state is None
        for name, value in start.parameters.items():
            assert torch.equal(stage.networks.parameters[name], value)
            assert torch.equal(done.parameters[name], value)
            assert done.parameters[name].data_ptr() != value.data_ptr()
        assert run.stage("policy", start, SETTINGS).networks is None


def test_another_run_s_checkpoint_is_refused_on_opening_and_the_lock_let_go(folder, start):
    with Run(folder, "id", every=0) as run:
        run.stage("outcome", start, SETTINGS).keep(at(start))
    with (
        pytest.raises(FileError, match=r"outcome\.safetensors: belongs to a run with other data"),
        Run(folder, "another"),
    ):
        pass
    with Run(folder, "id"):
        pass


def test_a_checkpoint_is_refused_under_another_version_of_torch(folder, start, monkeypatch):
    """Its numbers may round otherwise, and the promise is the same bytes."""
    with Run(folder, "id", every=0) as run:
        run.stage("outcome", start, SETTINGS).keep(at(start))
    monkeypatch.setattr(torch, "__version__", "99.0")
    with pytest.raises(FileError, match="or version of torch"), Run(folder, "id"):
        pass


def test_a_stage_with_other_settings_or_another_start_is_refused(folder, start):
    with Run(folder, "id", every=0) as run:
        run.stage("outcome", start, SETTINGS).keep(at(start))
        other = Bundle.start(start.network, [7])
        for changed in ((start, Settings(epochs=4)), (other, SETTINGS)):
            with pytest.raises(FileError, match=r"belongs to a run with other data, settings"):
                run.stage("outcome", *changed)
        assert run.stage("outcome", start, SETTINGS).state is not None


def test_f4_a_run_folder_in_use_is_refused(folder):
    """F4."""
    with (
        Run(folder, "id"),
        pytest.raises(FileError, match=r"run: is in use by another process\."),
        Run(folder, "id"),
    ):
        pass


def test_clearing_removes_checkpoints_and_their_remains_and_nothing_else(folder, start):
    with Run(folder, "id", every=0) as run:
        run.stage("policy", start, SETTINGS).keep(at(start))
        (folder / "checkpoint" / ".policy.safetensors.elsewhere.1.0a.part").write_bytes(b"half")
        (folder / "checkpoint" / "notes.txt").write_bytes(b"mine")
        run.clear()
        assert [path.name for path in (folder / "checkpoint").iterdir()] == ["notes.txt"]
        (folder / "checkpoint" / "notes.txt").unlink()
        run.clear()
    assert list(folder.iterdir()) == []


def test_a_run_needs_a_parent_a_folder_and_sound_settings(tmp_path, start):
    with pytest.raises(FileError, match=r"no: must be a folder that exists\.$"):
        Run(tmp_path / "no" / "run", "id").__enter__()
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match=r"file: must be a folder\.$"):
        Run(tmp_path / "file", "id").__enter__()
    for every in (-1, float("nan")):
        with pytest.raises(SettingError, match=r"^every: must be 0 or more seconds"):
            Run(tmp_path / "run", "id", every=every)
    with pytest.raises(SettingError, match=r"^every: must be a number"):
        Run(tmp_path / "run", "id", every="10")
    with pytest.raises(SettingError, match=r"^run: must be a run in use\. Use with Run"):
        Run(tmp_path / "run", "id").stage("policy", start, SETTINGS)
    with Run(tmp_path / "run", "id") as run:
        for name in ("", "../x", "a/b", "a b", "ä", ".x"):
            with pytest.raises(SettingError, match=r"^stage: must be named by letters"):
                run.stage(name, start, SETTINGS)
        run.stage("policy-0", start, SETTINGS)


# ---- the log -----------------------------------------------------------------------------------


def test_the_log_has_a_line_an_epoch_and_passes_the_report_on(folder, start):
    told = []
    with Run(folder, "id") as run:
        report = run.stage("policy", start, SETTINGS).reporting(told.append)
        report(after(1, "", 0.5))
        report(replace(after(2, "", math.inf), seconds_left=math.nan))
        run.stage("outcome", start, SETTINGS).reporting(None)(after(1, "", 0.25))
    assert [(at.stage, at.epoch) for at in told] == [("policy", 1), ("policy", 2)]
    lines = (folder / "log.jsonl").read_text().splitlines()
    usual = {"epochs": 9, "loss": 0.25, "seconds_left": 3.0}
    assert [json.loads(line) for line in lines] == [
        {**usual, "stage": "policy", "epoch": 1, "held_out": 0.5},
        {**usual, "stage": "policy", "epoch": 2, "held_out": None, "seconds_left": None},
        {**usual, "stage": "outcome", "epoch": 1, "held_out": 0.25},
    ]
    assert stat.S_IMODE((folder / "log.jsonl").stat().st_mode) == 0o600


@pytest.mark.parametrize(("error", "left"), [(DataError("x", "y"), False), (OSError(), True)])
def test_a_refused_run_leaves_nothing_and_a_broken_one_what_it_had(tmp_path, error, left):
    folder = tmp_path / "run"

    def work():
        with Run(folder, "identity"):
            (folder / "checkpoint" / "policy.safetensors").write_bytes(b"half")
            raise error

    with pytest.raises(type(error)):
        work()
    assert folder.exists() is left


@pytest.mark.parametrize("error", [DataError("x", "y"), SettingError("device", "is gone")])
def test_a_resumed_run_that_is_refused_keeps_what_an_earlier_process_did(folder, start, error):
    with Run(folder, "id", every=0) as run:
        run.stage("policy", start, SETTINGS).keep(at(start))
    with pytest.raises(type(error)), Run(folder, "id"):
        raise error
    with Run(folder, "id") as run:
        assert run.stage("policy", start, SETTINGS).state.epoch == 1


def test_a_run_whose_policy_cannot_be_written_keeps_its_checkpoints(folder, start):
    def work():
        with Run(folder, "id") as run:
            run.stage("policy", start, SETTINGS).finish(start)
            raise FileError("policy", "cannot be written")

    with pytest.raises(FileError):
        work()
    with Run(folder, "id") as run:
        assert run.stage("policy", start, SETTINGS).networks is not None


def test_an_epoch_gone_through_again_replaces_its_line(tmp_path):
    log = RunLog(tmp_path / "log.jsonl")
    for epoch in (1, 2, 3):
        log.add(after(epoch, "policy", 1.0))
    log.add(after(2, "outcome", math.inf))
    log = RunLog(tmp_path / "log.jsonl")
    log.note("policy", "resumed")
    log.add(after(2, "policy", 0.5))
    usual = {"epochs": 9, "loss": 0.25, "seconds_left": 3.0}
    assert read_log(tmp_path / "log.jsonl") == [
        {"stage": "policy", "epoch": 1, "held_out": 1.0, **usual},
        {"stage": "outcome", "epoch": 2, "held_out": None, **usual},
        {"stage": "policy", "event": "resumed"},
        {"stage": "policy", "epoch": 2, "held_out": 0.5, **usual},
    ]


@pytest.mark.parametrize("torn", [b'{"stage": "pol', b'{"stage": "\xc3', b"", b"{", b'{"a": 1}'])
def test_half_a_line_at_the_end_of_the_log_is_left_out_and_written_over(tmp_path, torn):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"stage": "policy", "epoch": 1}\n' + torn)
    whole = [{"a": 1}] if torn == b'{"a": 1}' else []
    assert read_log(path) == [{"stage": "policy", "epoch": 1}, *whole]
    RunLog(path).add(after(2, "policy", 0.5))
    assert read_log(path)[-1]["epoch"] == 2
    assert path.read_bytes().endswith(b"\n")


def test_a_broken_line_within_the_log_is_refused_by_its_number(tmp_path):
    path = tmp_path / "log.jsonl"
    for line, rule in ((b"{", "is not JSON"), (b"3", "must be an object")):
        path.write_bytes(b'{"stage": "policy"}\n' + line + b"\n")
        with pytest.raises(FileError, match=rf"log\.jsonl: line 2 {rule}\. Remove it\.$"):
            read_log(path)
    with pytest.raises(FileError, match=r"cannot be read: No such file or directory\.$"):
        read_log(tmp_path / "nowhere")


# ---- when a state is kept ----------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves, and a count of what is saved, each taking `cost` seconds."""

    class Clock:
        now, cost, saved = 0.0, 0.0, 0

        def monotonic(self):
            return self.now

    made, real = Clock(), runs.save_state

    def save(*arguments):
        made.now += made.cost
        made.saved += 1
        real(*arguments)

    monkeypatch.setattr(runs, "time", made)
    monkeypatch.setattr(runs, "save_state", save)
    return made


def test_a_state_that_is_dear_to_save_is_kept_when_ten_seconds_have_passed(folder, start, clock):
    with Run(folder, "id") as run:
        clock.cost = 0.5
        stage = run.stage("propensity", start, SETTINGS)
        saved = []
        for second in range(25):
            clock.now = second
            stage.keep(at(start))
            saved.append(clock.saved)
    assert saved == [1] * 11 + [2] * 11 + [3] * 3


def test_the_end_of_an_epoch_is_kept_unless_saving_would_cost_more_than_it_may(
    folder, start, clock
):
    """A twentieth of a second to save is worth it after two and a half seconds, not before."""
    clock.cost = 0.05
    with Run(folder, "id") as run:
        stage = run.stage("propensity", start, SETTINGS)
        stage.keep(at(start, 1))
        assert clock.saved == 1
        clock.now = 2.5
        stage.keep(at(start, 2))
        assert clock.saved == 1
        clock.now = 2.6
        stage.keep(at(start, 3))
        assert clock.saved == 2


def test_best_networks_that_are_not_finite_do_not_replace_what_was_kept(folder, start):
    with Run(folder, "id", every=0) as run:
        stage = run.stage("propensity", start, SETTINGS)
        stage.keep(at(start, 1))
        broken = at(start, 2)
        broken.best["head.bias"][:] = torch.nan
        stage.keep(broken)
        assert run.stage("propensity", start, SETTINGS).state.epoch == 1
