"""The commands of docs/tables.md, as printed, on small tables of those shapes."""

import csv
import io
import json
import os
import re
import shlex
import shutil
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from commands import run
from table_shapes import write_shapes

import etips

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
PARTS = {int(part[0]): part for part in re.split(r"^## (?=\d)", PAGE, flags=re.MULTILINE)[1:]}
BESIDE = ROOT.parent / "shared" / "data" / "ist"
PUBLISHED = Path(os.environ.get("ETIPS_IST", BESIDE)) / "IST.csv.gz"


def blocks(number, kind):
    return re.findall(rf"^```{kind}\n(.*?)^```$", PARTS[number], re.MULTILINE | re.DOTALL)


def play(number):
    """Run the commands of a part; what each printed."""
    (block,) = blocks(number, "sh")
    commands = [shlex.split(line) for line in block.splitlines()]
    assert all(words[0] == "etips" for words in commands)
    return [run(*words[1:]) for words in commands]


@pytest.fixture
def tables(tmp_path, monkeypatch):
    write_shapes(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_there_are_eight_and_each_has_something_to_run():
    assert sorted(PARTS) == list(range(1, 9))
    for number in PARTS:
        assert blocks(number, "sh") or blocks(number, "python")


@pytest.mark.parametrize(
    ("number", "name"),
    [(2, "ward"), (3, "doses"), (4, "codes"), (5, "station"), (7, "trial"), (8, "sites")],
)
def test_a_table_has_the_columns_that_the_page_shows(number, name, tables):
    encoding = "latin-1" if name == "station" else "utf-8"
    header = (tables / f"{name}.csv").read_text(encoding=encoding).splitlines()[0]
    shown, row = blocks(number, "csv")[0].splitlines()
    assert shown == header
    kind = ";" if ";" in header else ","
    assert len(next(csv.reader([row], delimiter=kind))) == len(header.split(kind))


def test_1_a_trial_as_published(tables):
    checked, _, judged, _ = play(1)
    assert re.search(r"loss +DIED +guessed", checked)
    assert "Y, M" in checked
    seen = etips.load(tables / "run" / "policy").schema.sequence
    assert {"AGE", "RCONSC=D", "RATRIAL_missing"} <= set(seen)
    assert not {"FDEAD", "DDEAD", "OCCODE", "DEAD1"} & set(seen)
    assert "against the clinicians" in judged
    assert (tables / "report.html").read_text().startswith("<!doctype html>")


@pytest.mark.skipif(
    not PUBLISHED.is_file(), reason="no IST.csv.gz beside the repository or in the folder ETIPS_IST"
)
def test_1_the_published_trial_has_nothing_to_individualise(tmp_path, monkeypatch):
    shutil.copy(PUBLISHED, tmp_path / "IST.csv.gz")
    monkeypatch.chdir(tmp_path)
    checked, _, judged, page = play(1)
    assert "19,435 stays" in checked
    assert not re.search(r", better$", judged, re.MULTILINE)
    found = json.loads((tmp_path / "run" / "results.json").read_bytes())
    assert found["data"]["n_decisions"] == pytest.approx(0.3 * 19_435, rel=0.03)
    assert "no difference shown" in page


def test_2_a_ward_log_with_time_stamps(tables):
    checked, _ = play(2)
    assert "every" in checked
    assert "4h" in (tables / "ward.toml").read_text()
    assert (tables / "ward-run" / "policy").is_dir()


def test_3_two_doses(tables):
    play(3)
    header = (tables / "advice.csv").read_text().splitlines()[0]
    for column in ("recommended_action", "fluid_low", "fluid_median", "vaso_low", "vaso_median"):
        assert column in header


def test_4_codes_with_holes(tables):
    play(4)
    assert etips.load(tables / "codes-run" / "policy").schema.actions == ("0", "100", "300")


def test_5_semicolons_and_decimal_commas(tables):
    checked, _ = play(5)
    assert "ja" in checked
    assert "Größe" in checked


def test_6_frames(tables):
    pytest.importorskip("pandas")
    (block,) = blocks(6, "python")
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(block, "docs/tables.md", "exec"), {"__name__": "__example__"})
    assert printed.getvalue() == block.splitlines()[-1][2:] + "\n"


def test_7_a_rule_in_sql(tables):
    (judged,) = play(7)
    assert "sick" in judged
    assert "against the clinicians" in judged
    assert (tables / "rule.json").is_file()


def test_8_two_sites(tables):
    (compared,) = play(8)
    assert "north to south" in compared
    assert (tables / "sites.html").read_text().startswith("<!doctype html>")
