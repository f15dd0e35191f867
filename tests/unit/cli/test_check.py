"""`etips check` on the command line: what it prints, writes and leaves alone."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from commands import call

from etips.data.tables.table_spec import TableSpec, read_columns


@pytest.fixture
def place(tmp_path):
    """A ward log, numbers only."""
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "stay_id": np.repeat(np.arange(60), 4),
            "hour": np.tile(np.arange(4), 60),
            "treatment": rng.integers(0, 2, 240),
            "died": rng.integers(0, 2, 240),
            "hr": rng.normal(80, 9, 240),
            "age": np.repeat(rng.integers(20, 90, 60), 4),
        }
    )
    pa_csv.write_csv(table, tmp_path / "log.csv")
    return tmp_path


def test_it_says_what_would_be_read_and_writes_it(place):
    result = call("check", place / "log.csv")
    assert result.exit_code == 0, result.output
    for words in ("Read as", "guessed: ", "60 stays", "180 decisions", "Features (2)", "lag 1"):
        assert words in result.stdout
    assert f"etips fit {place}/log.csv --table {place}/table.toml --hold-out 0.3" in result.stdout
    assert read_columns(place / "table.toml") == TableSpec(
        stay="stay_id", step="hour", action=("treatment",), loss="died", static=("age",)
    )


def test_no_line_is_wider_than_a_terminal_but_the_command(place):
    wide = call("check", place / "log.csv", "--out", place / "t.toml").stdout.splitlines()
    assert all(len(line) <= 80 for line in wide if not line.startswith("  etips "))


def test_an_earlier_file_stays_unless_somebody_asks(place):
    (place / "table.toml").write_text("mine")
    result = call("check", place / "log.csv")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "exists already" in result.stderr
    assert "--overwrite" in result.stderr
    assert (place / "table.toml").read_text() == "mine"
    assert call("check", place / "log.csv", "--out", place / "other.toml").exit_code == 0
    assert call("check", place / "log.csv", "--overwrite").exit_code == 0
    assert (place / "table.toml").read_text() != "mine"


def test_json_is_all_that_is_printed(place):
    result = call("check", place / "log.csv", "--json", "--lag", 0)
    document = json.loads(result.stdout)
    assert (document["lag"], document["n_decisions"]) == (0, 240)
    assert document["columns"]["lag"] == 0
    assert {own["field"] for own in document["guesses"]} == {
        "stay", "step", "action", "loss", "static",
    }  # fmt: skip


def test_a_file_of_columns_is_taken_and_options_go_over_it(place):
    call("check", place / "log.csv")
    result = call(
        "check", place / "log.csv", "--table", place / "table.toml", "--loss", "hr", "--json",
        "--overwrite",
    )  # fmt: skip
    document = json.loads(result.stdout)
    assert document["columns"]["loss"] == "hr"
    assert "loss" not in {own["field"] for own in document["guesses"]}


def test_a_folder_and_a_file_that_is_not_there_are_refused_in_one_line(place):
    for data in (place, place / "none.csv"):
        result = call("check", data)
        assert (result.exit_code, result.stdout) == (2, "")
        assert len(result.stderr.splitlines()) == 1


def test_faults_are_told_with_what_could_be_read_and_an_exit_code_of_two(place):
    text = (place / "log.csv").read_text().splitlines()
    text[5] = text[5].rpartition(",")[0] + ",inf"
    (place / "log.csv").write_text("\n".join(text))
    result = call("check", place / "log.csv")
    assert result.exit_code == 2
    assert "Faults (1)" in result.stdout
    assert "180 decisions" in result.stdout
    assert (place / "table.toml").exists()
