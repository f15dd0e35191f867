"""A study on the screen."""

import json

import pytest

from etips.cli import study_output
from etips.cli.study_output import print_study, tables_as_json, tables_as_markdown
from etips.results.results import DataSummary
from etips.results.study_result import StudyResult, Table

COLUMNS = ("policy", *(f"column {number} of the table" for number in range(9)))
ROW = ("p", *("0.494 ± 0.003" for _ in range(9)))
TABLE = Table("Table II", "A note.", COLUMNS, (ROW,))
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
    assert printed.endswith(f"read {tmp_path / study_output.RESULTS}.\n")


def test_markdown_and_json_have_the_same_cells():
    assert f"| {' | '.join(ROW)} |" in tables_as_markdown(STUDY)
    tables = json.loads(tables_as_json({"s": STUDY}))["s"]["tables"]
    assert tables[0]["rows"] == [list(ROW)]
