"""How a command shows where it stands: on a terminal as it goes, in a log a line a minute."""

import contextlib
import json
import math
import os
import pty
import re
import subprocess
import sys
import threading
from dataclasses import replace

import pytest
import typer
from small_worlds import ward

from etips.cli import console
from etips.cli.console import refusals, standing
from etips.errors import SettingError
from etips.learn.training.epoch_report import EpochReport
from etips.notes import note

COMMAND = (sys.executable, "-c", "from etips.cli.main import main; main()", "fit")
TINY = ("hidden=4", "embed=0", "n_folds=2", "translations=0.3,0.7", "support=0")


def fit(folder, stderr, *more):
    options = [part for entry in (*TINY, *more) for part in ("--set", entry)]
    places = (str(folder / "log"), "--out", str(folder / "run"), "--json")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "160", "TERM": "xterm"}
    return subprocess.run(
        [*COMMAND, *places, *options],
        stdout=subprocess.PIPE,
        stderr=stderr,
        env=environment,
        check=True,
    )


@pytest.fixture
def folder(tmp_path):
    ward().save(tmp_path / "log")
    return tmp_path


def test_a_terminal_is_told_stage_epoch_time_loss_risk_and_factor(folder):
    ours, theirs = pty.openpty()
    said = bytearray()

    def listen():  # all the while: a terminal that nobody reads holds the command up
        with contextlib.suppress(OSError):  # the other end is closed, and all is read
            while block := os.read(ours, 2**16):
                said.extend(block)

    listener = threading.Thread(target=listen)
    listener.start()
    fit(folder, theirs, "epochs=40", "patience=40")  # a bar is painted ten times a second
    os.close(theirs)
    listener.join()
    os.close(ours)
    text = said.decode()
    standing = r"epoch \d+ of 40, \d+ s left, loss -?[\d.]+, held-out -?[\d.]+"
    assert re.search(rf"propensity: {standing} ", text)
    assert re.search(rf"policy: {standing}, factor [\d.]+ ", text)


def test_without_a_terminal_nothing_is_said_and_the_log_has_it_all(folder):
    done = fit(folder, subprocess.PIPE, "epochs=2")
    assert done.stderr == b""
    assert json.loads(done.stdout)
    lines = [json.loads(line) for line in (folder / "run" / "log.jsonl").read_text().splitlines()]
    epochs = [(line["stage"], line["epoch"]) for line in lines]
    assert epochs == [("propensity", 1), ("propensity", 2), ("policy", 1), ("policy", 2)]
    names = {"stage", "epoch", "epochs", "loss", "held_out", "seconds_left"}
    assert set(lines[0]) == names
    assert set(lines[-1]) == names | {"matching_factor"}


def test_a_report_becomes_a_line():
    at = EpochReport(3, 12, loss=0.51234, held_out=math.inf, seconds_left=7.4, stage="policy")
    line = standing(replace(at, matching_factor=0.98))
    assert line == "policy: epoch 3 of 12, 7 s left, loss 0.5123, held-out inf, factor 0.98"
    assert standing(at) == "policy: epoch 3 of 12, 7 s left, loss 0.5123, held-out inf"


def test_a_log_gets_a_line_a_minute_and_a_short_command_none(monkeypatch, capsys):
    clock = iter([0.0, 5.0, 61.0, 62.0, 122.0])
    monkeypatch.setattr(console.time, "monotonic", lambda: next(clock))
    with console.progress_bar() as tell:
        for share in (0.1, 0.2, 0.3, 0.4):
            tell("direct-fold-1; about 2 min left", share)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        " 20%  direct-fold-1; about 2 min left",
        " 40%  direct-fold-1; about 2 min left",
    ]


def test_remarks_are_a_line_each_on_stderr_and_told_once(capsys):
    with refusals("etips fit") as tell_notes:
        note("5 gaps were carried forward")
        tell_notes()
        assert capsys.readouterr().err == "5 gaps were carried forward\n"
        note("5 gaps were carried forward")
        note("lag 1 leaves 20 decisions out")
    assert capsys.readouterr() == ("", "lag 1 leaves 20 decisions out\n")


def test_a_refusal_stands_alone(capsys):
    def read():
        with refusals("etips fit"):
            note("5 gaps were carried forward")
            raise SettingError("lag", "must be 0 or 1")

    with pytest.raises(typer.Exit):
        read()
    assert capsys.readouterr().err == "etips fit: lag: must be 0 or 1.\n"


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("etips fit", "etips fit: interrupted: run the same command to go on"),
        ("etips report", "etips report: interrupted"),
    ],
)
def test_an_interrupt_says_whether_the_work_can_go_on(capsys, command, line):
    def work():
        with refusals(command):
            raise KeyboardInterrupt

    with pytest.raises(typer.Exit) as ended:
        work()
    assert ended.value.exit_code == 130
    assert capsys.readouterr().err == f"{line}\n"
