"""What commands print: where they stand, refusals, tables whole at any width, studies."""

import contextlib
import io
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
from rich.console import Console
from small_worlds import ward

from etips.cli import console
from etips.cli.console import print_table, refusals, showing_notes, standing
from etips.cli.evaluate import _row
from etips.cli.study_output import print_study, tables_as_json, tables_as_markdown
from etips.errors import SettingError
from etips.learn.training.epoch_report import EpochReport
from etips.notes import note
from etips.results.records import DataSummary, EstimateResult, MethodResult
from etips.results.study_result import StudyResult, Table
from etips.runs.places import RESULTS

COMMAND = (sys.executable, "-c", "from etips.cli.main import main; main()", "fit")
TINY = ("hidden=4", "embed=0", "n_folds=2", "translations=0.3,0.7", "support=0")
ETIPS = ("--method", "etips")


def fit(folder, stderr, *more):
    options = [part for entry in (*TINY, *more) for part in ("--set", entry)]
    places = (str(folder / "log"), "--out", str(folder / "run"), *ETIPS, "--json")
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
    stages = ("propensity", "policy", "finish")
    assert epochs == [(stage, epoch) for stage in stages for epoch in (1, 2)]
    names = {"stage", "epoch", "epochs", "loss", "held_out", "seconds_left"}
    assert set(lines[0]) == names
    assert set(lines[2]) == names | {"matching_factor"}


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


def test_remarks_are_a_line_each_on_stderr_as_soon_as_a_part_is_done(capsys):
    with refusals("etips fit"):
        with showing_notes():
            note("5 gaps were carried forward")
            note("5 gaps were carried forward")
        assert capsys.readouterr().err == "5 gaps were carried forward\n"
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


WIDE = ["policy", "ATENP", "IPS", "SNIPS", "DR", "matching factor", "matched / others", "verdict"]
WIDE += ["change over a whole stay", "true risk", "true risk, drawn"]
ROW = [*("-0.044 ± 0.005", "0.494 ± 0.003", "0.500 ± 0.003", "0.500 ± 0.002", "0.988 ± 0.001")]
ROW += ["7,577 / 8,199", "reliable", "-0.852 [-1.299, -0.405], doubtful", "0.4984 ± 0.0015", "-"]
ROWS = [["etips", *ROW], ["most-frequent", *ROW]]


def printed(columns, rows, width, plain=False):
    file = io.StringIO()
    print_table(columns, rows, plain=plain, console=Console(file=file, width=width))
    return file.getvalue()


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("width", [60, 80, 100, 132])
def test_a_table_too_wide_is_printed_in_parts_and_nothing_is_cut(width, plain):
    text = printed(WIDE, ROWS, width, plain)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for cell in ROW:
        for part in re.split(" ± | (?=\\[)|, (?=d)", cell):
            assert text.count(part) >= 2, cell
    assert text.count("etips") == text.count("most-frequent")  # each part names its rows
    assert text.count("etips") >= (2 if width <= 100 else 1)


def test_a_table_that_fits_is_one_and_its_spreads_stay_beside_their_figures():
    text = printed(WIDE, ROWS, 250)
    assert text.count("etips") == 1
    assert "-0.044 ± 0.005" in text


def test_a_long_name_takes_several_lines_and_markup_is_text():
    name = "[red]" + "x" * 70
    text = printed(["policy", "risk"], [[name, "0.5"]], 80)
    assert max(map(len, text.splitlines())) <= 80
    letters = re.sub(r"[^x\[\]red]", "", text.split("┡")[1])
    assert letters.count("x") == 70
    assert "[red]" in text


def test_a_title_wider_than_its_column_takes_several_lines():
    text = printed(["policy", "matching factor there"], [["p", "0.99"]], 80)
    assert "matching factor" not in text
    assert "matching" in text


def test_no_rows_are_a_head():
    assert "policy" in printed(["policy", "risk"], [], 80)


def test_a_name_takes_several_lines_before_a_table_is_parted():
    columns = ["quantity", "target", "accepted", "found", "outcome"]
    row = ["mean of ln(0.1 + output_4hourly)", "278568", "277500 to 279700", "not shown"]
    text = printed(columns, [[*row, "too small to judge"]], 80)
    assert text.count("quantity") == 1
    assert "too small" in text
    assert max(map(len, text.splitlines())) <= 80


TITLES = ("policy", *(f"column {number} of the table" for number in range(9)))
CELLS = ("p", *("0.494 ± 0.003" for _ in range(9)))
TABLE = Table("Table II", "A note.", TITLES, (CELLS,))
STUDY = StudyResult(DataSummary(30, 60, 3, 0), (), 1.0, tables=(TABLE,), lead="A lead.")


@pytest.mark.parametrize("width", ["80", "60"])
def test_a_study_is_printed_whole_at_any_width(capsys, monkeypatch, tmp_path, width):
    monkeypatch.setenv("COLUMNS", width)
    print_study(STUDY, tmp_path)
    printed = capsys.readouterr().out
    table = printed.partition("A note.")[0]
    assert max(len(line.rstrip()) for line in table.splitlines()) <= int(width)
    assert "…" not in printed
    assert printed.count("0.494") == printed.count("± 0.003") == 9
    assert printed.endswith(f"read {tmp_path / RESULTS}.\n")


def test_markdown_and_json_have_the_same_cells():
    assert f"| {' | '.join(CELLS)} |" in tables_as_markdown(STUDY)
    tables = json.loads(tables_as_json({"s": STUDY}))["s"]["tables"]
    assert tables[0]["rows"] == [list(CELLS)]


def test_a_line_has_room_for_two_estimates_beside_the_headline():
    """With three, the interval of the headline is cut in two on a terminal of eighty columns."""
    estimates = tuple(
        EstimateResult(name, risk=0.5, std_error=0.1, low=0.4, high=0.6)
        for name in ("dm", "snips", "ips", "dr", "sndr")
    )
    line = _row(MethodResult("policy", estimates, None, "reliable", (), None))
    assert list(line) == ["policy", "dm", "ips", "dr", "factor", "verdict"]
