"""Sheets of Excel workbooks."""

from datetime import date, datetime

import pytest

from etips.data.tables.sources import open_source, whole_column
from etips.errors import FileError

openpyxl = pytest.importorskip("openpyxl")


def write(path, **sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def read(path, **options):
    source = open_source(path, **options)
    return {name: whole_column(source, name).to_pylist() for name in source.columns}, source


def test_cells_keep_their_types(tmp_path):
    rows = [
        [],
        ["stay", "x", "ward", "vent", "seen", None],
        [1, 1.5, "a", True, datetime(2024, 1, 2, 3, 4), None],
        [None, None, None, None, None, None],
        [2, 2, "b", False, date(2024, 1, 3), None],
    ]
    found, _ = read(write(tmp_path / "a.xlsx", Ward=rows))
    assert found == {
        "stay": [1, 2],
        "x": [1.5, 2.0],
        "ward": ["a", "b"],
        "vent": [True, False],
        "seen": [datetime(2024, 1, 2, 3, 4), datetime(2024, 1, 3)],
    }


def test_numbers_kept_as_text_are_numbers_and_mixtures_are_told(tmp_path):
    rows = [["a", "b", "c"], [1, "1,5", 1], ["2", "2,5", "<5"], ["-", None, 3]]
    found, source = read(write(tmp_path / "a.xlsx", Ward=rows))
    assert found["a"] == [1, 2, None]
    assert found["b"] == [1.5, 2.5, None]
    assert "mixes numbers and text (limits" in str(source.faults["c"])


def test_a_sheet_is_named_where_there_are_several(tmp_path):
    path = write(tmp_path / "a.xlsx", One=[["a"], [1]], Two=[["a"], [2]])
    with pytest.raises(
        FileError, match=r"has 2 sheets\. Name one, a\.xlsx#One; its sheets: One, Two\."
    ):
        open_source(path)
    with pytest.raises(
        FileError, match=r"#Three: is no sheet of the workbook\. Its sheets: One, Two"
    ):
        open_source(f"{path}#Three")
    assert read(f"{path}#Two")[0] == {"a": [2]}


def test_a_damaged_or_empty_workbook_is_refused(tmp_path):
    path = write(tmp_path / "a.xlsx", One=[])
    with pytest.raises(FileError, match=r"has an empty sheet"):
        open_source(path)
    content = write(path, One=[["a", "b"], [1, 2]]).read_bytes()
    for cut in (200, len(content) // 2, len(content) - 30):
        path.write_bytes(content[:cut])
        with pytest.raises(FileError, match=r"is a zip archive|cannot be read as an Excel"):
            open_source(path)


def test_without_openpyxl_the_remedy_is_told(tmp_path, monkeypatch):
    path = write(tmp_path / "a.xlsx", One=[["a"], [1]])
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(FileError, match=r"needs openpyxl.*etips\[excel\]"):
        open_source(path)
