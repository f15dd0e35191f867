"""The log of a run: whole lines only, one an epoch."""

import math

import pytest
from run_states import after

from etips.errors import FileError
from etips.runs.run_log import RunLog, read_log


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
