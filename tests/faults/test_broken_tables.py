"""Tables that a hospital might send: one line with all faults and the remedy, and nothing left."""

import gzip
import re
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import refuse

SECRET = ("4711.815", "kanarienvogel")
"""Values of patients in every table below; no line may show one."""
HEADER = ["stay", "hour", "dose", "harm", "map", "ward"]


def rows(n=40, **changes):
    """A sound ward log, cells of some columns replaced by what `changes` makes of the row."""
    table = []
    for i in range(n):
        stay, hour = divmod(i, 4)
        row = {
            "stay": stay,
            "hour": hour,
            "dose": (i * 7) % 3,
            "harm": i % 2,
            "map": 60 + (i * 13) % 30 + 0.5,
            "ward": "north" if stay % 2 else "south",
        }
        table.append({**row, **{name: make(i, row) for name, make in changes.items()}})
    return table


def text(table, delimiter=",", decimal=".", header=None, quote=()):
    """The table as text."""
    names = list(table[0]) if header is None else header

    def cell(name, value):
        shown = "" if value is None else str(value)
        if isinstance(value, float):
            shown = shown.replace(".", decimal)
        return f'"{shown}"' if name in quote else shown

    lines = [delimiter.join(names)]
    lines += [delimiter.join(cell(name, value) for name, value in row.items()) for row in table]
    return "\n".join(lines) + "\n"


def at(row, bad, good):
    """`bad` in that row, otherwise what `good` says."""
    return lambda i, own: bad if i in (row if isinstance(row, tuple) else (row,)) else good(i, own)


def workbook(path, *sheets):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, table in sheets:
        sheet = book.create_sheet(name)
        for row in table:
            sheet.append(row)
    book.save(path)


def plain(i, row):
    return row["map"]


ROLES = ["--stay", "stay", "--step", "hour", "--action", "dose", "--loss", "harm"]
SEMI = {"delimiter": ";", "decimal": ","}

TEXTS = {
    "limits among numbers": (
        text(rows(map=at((3, 9), "<4711.815", plain))),
        [
            r"column map: mixes numbers and text \(limits such as < or >\); 2 of 40 rows",
            r"at row 3\. .*--categorical map .*--drop map \(drop=\[\"map\"\]\)",
        ],
    ),
    "units in some cells": (
        text(rows(map=at(5, "65 mmHg", plain))),
        [r"mixes numbers and text \(numbers with a unit\); 1 of 40 rows fail, first at row 5"],
    ),
    "different units": (
        text(rows(map=lambda i, row: f"{60 + i} {'mmHg' if i % 2 else 'kPa'}")),
        [r"column map: holds numbers with different units; 40 of 40 rows fail", "unit into the"],
    ),
    "thousands beside fractions": (
        text(rows(map=at(4, "1,234", lambda i, row: f"{i}.5")), quote=("map",)),
        [r"column map: has separators of thousands .* fractions; 1 of 40 rows", r"Write 1234\.5"],
    ),
    "thousands of two kinds": (
        text(rows(map=lambda i, row: f"{i + 1}.234,5" if i else "1,234.5"), quote=("map",)),
        [r"column map: mixes decimal points and decimal commas; 39 of 40"],
    ),
    "a limit of detection": (
        text(rows(map=at(4, "<60", plain))),
        [r"column map: mixes numbers and text \(limits such as < or >\)", r"--limits value"],
    ),
    "one action only": (
        text(rows(dose=lambda i, row: "A")),
        [r"must hold at least two actions to learn from", r"--action"],
    ),
    "harm that nobody named": (
        text(rows(harm=lambda i, row: "ABC"[i % 3])),
        [r"column harm: holds words of which it is not clear which are the harm", r"--bad WORD"],
    ),
    "fractions or thousands, nothing tells": (
        text(rows(map=lambda i, row: f"{i + 1},234"), delimiter=";"),
        [r"column map: may hold fractions or thousands", r"--decimal , or .* \(decimal=\",\""],
    ),
    "points and commas": (
        text(rows(map=lambda i, row: f"{60 + i}{'.' if i % 2 else ','}5"), delimiter=";"),
        [r"column map: mixes decimal points and decimal commas; 20 of 40 rows fail"],
    ),
    "day or month": (
        text(rows(seen=lambda i, row: f"0{1 + i % 9}/0{1 + i % 3}/2024"), **SEMI),
        [r"column seen: may be day/month or month/day; 40 of 40", r"--dates dmy .*\(dates=\"dmy\""],
    ),
    "day and month": (
        text(rows(seen=lambda i, row: f"{25 if i % 2 else 3}/{3 if i % 2 else 25}/2024")),
        [r"column seen: mixes day/month and month/day; 20 of 40"],
    ),
    "a date that does not exist": (
        text(rows(seen=at(7, "31.02.2024", lambda i, row: "01.02.2024"))),
        [r"column seen: must be dates that exist; 1 of 40 rows fail, first at row 7"],
    ),
    "years of two digits": (
        text(rows(seen=lambda i, row: f"{1 + i % 28}/02/24")),
        [r"column seen: has years of two digits; 40 of 40 rows fail.*Write all four"],
    ),
    "a sum below the table": (
        text([*rows(), {**dict.fromkeys(HEADER), "stay": "Total", "harm": 20, "map": 4711.815}]),
        [r"column stay: mixes numbers and text; 1 of 41 .* first at row 40\. Is it a footer\?"],
    ),
    "a remark below the table": (
        text(rows()) + "(40 rows of kanarienvogel)\n",
        [r"as many fields as the header; 1 of 41 rows fail, first at row 40\. Are they a footer\?"],
    ),
    "a title above the table": (
        "Export of ward kanarienvogel\n\n" + text(rows()),
        [r"has lines above the header, .* commas\. Delete the lines"],
    ),
    "a name twice": (
        text(rows(), header=["stay", "hour", "dose", "harm", "map", "map"]),
        [r'column names must be distinct; "map" occurs more than once\. Rename'],
    ),
    "a column without a name": (
        text(rows(), header=["stay", "hour", "dose", "harm", "map", ""]),
        [r"column 6 has no name\. Give every column a name"],
    ),
    "names of rows, as R writes them": (
        text([{"n": f"r{i}", **row} for i, row in enumerate(rows())], header=HEADER),
        [r"has one field more in every row than names in the header\. Give"],
    ),
    "unquoted decimal commas": (
        text(rows(map=at(tuple(range(0, 40, 2)), "65,5", plain))),
        [r"as many fields as the header; 20 of 40 rows fail.*use semicolons"],
    ),
    "a quote that is never closed": (
        text(rows(ward=at(9, '"north', lambda i, row: row["ward"]))),
        [r"ends inside a field in quotes\. Close"],
    ),
    "two delimiters that fit alike": (
        "stay,hour,dose,harm;map\n" + "".join(f"{i},0,{i % 3},{i % 2};5\n" for i in range(40)),
        [r"may have (commas or semicolons|semicolons or commas) between its fields\. Write sep="],
    ),
    "a header and nothing else": (",".join(HEADER) + "\n", [r"must have at least one row"]),
    "blank lines": ("\n\n\n", [r"holds no header\. The first line must name the columns"]),
    "names misspelt": (
        text(rows(), header=["stay", "Hour", "dose", "harmed", "map", "ward"]),
        [r"column hour: is missing .*Do you mean Hour\?", r"column harm: .* Do you mean harmed\?"],
    ),
    "a loss with words": (
        text(rows(harm=at((2, 5), "kanarienvogel", lambda i, row: row["harm"]))),
        [r"column harm: mixes numbers and text; 2 of 40 rows fail, first at row 2\. Write numbers"],
    ),
    "steps twice": (
        text(rows(hour=at(5, 0, lambda i, row: row["hour"]))),
        [r"column hour: must not occur twice in a stay; 1 of 40 rows", r"--every 1h"],
    ),
    "times that are no times": (
        text(rows(hour=lambda i, row: "morning" if i % 2 else "evening")),
        [r"column hour: must order in time"],
    ),
    "infinite values": (
        text(rows(map=at(4, "inf", plain))),
        [r"column map: must be finite in float32; 1 of 40 rows .* row 4\. .*--drop map"],
    ),
    "free text as a feature": (
        text(rows(note=lambda i, row: f"kanarienvogel {i}")),
        [r"column note: is text that looks like an identifier or free text", r"--drop note"],
    ),
    "no stay": (
        text(rows(stay=at((0, 4), None, lambda i, row: row["stay"]))),
        [r"column stay: must not be missing; 2 of 40 rows fail, first at row 0"],
    ),
    "five faults": (
        text(
            rows(
                map=at(3, "<4711.815", plain),
                temp=at(8, "inf", lambda i, row: 36.5),
                seen=lambda i, row: "01/02/2024",
                note=lambda i, row: f"kanarienvogel {i}",
                hr=at((1, 2), "n.n.", lambda i, row: 80 + i),
            )
        ),
        [
            "5 faults",
            r"columns map \(1 of 40 rows.*|column map: mixes",
            r"column seen: may be day/month",
            r"column note: is text that looks",
            r"hr.*mixes numbers and text|mixes numbers and text.*hr",
            r"column temp: must be finite",
        ],
    ),
    "neither UTF-8 nor Windows": (
        text(rows()).encode().replace(b"north", b"n\x81rth"),
        [r"is neither UTF-8 nor Windows-1252 text\. Save it as UTF-8"],
    ),
    "compressed without a word": (gzip.compress(text(rows()).encode()), [r"Rename it to log\."]),
    "nothing at all": (b"", [r"is empty: 0 bytes"]),
    "a page of a browser": (b"<html><table><tr><td>4711.815", [r"is an HTML page\. Save it as"]),
    "an old workbook": (b"\xd0\xcf\x11\xe0\xa1\xb1" + b"\0" * 600, [r"is an old Excel workbook"]),
    "JSON": (b'[{"stay": 1, "map": 4711.815}]', [r"is JSON\. Export it as CSV"]),
}  # fmt: skip


def refused(tmp_path, path, *options, data=None):
    """The line, with nothing in it about a patient, and nothing left behind."""
    before = sorted(tmp_path.rglob("*"))
    line = refuse(
        "fit", path if data is None else data, *(options or ROLES), "--out", tmp_path / "run"
    )
    assert sorted(tmp_path.rglob("*")) == before
    assert not any(secret in line for secret in SECRET)
    assert line.isprintable()
    return line


@pytest.mark.parametrize("case", TEXTS)
def test_a_broken_text_is_one_line_with_the_remedy(tmp_path, case):
    content, patterns = TEXTS[case]
    path = tmp_path / "log.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    line = refused(tmp_path, path)
    for pattern in patterns:
        assert re.search(pattern, line), line


def test_the_sound_table_is_not_refused_for_its_shape(tmp_path):
    """What the broken ones are made of: only the missing --out folder's parent stops it."""
    path = tmp_path / "log.csv"
    path.write_text(text(rows()))
    line = refuse("fit", path, *ROLES, "--out", tmp_path / "no" / "run")
    assert "must be a folder that exists" in line


def test_a_folder_without_data_a_zip_and_a_wrong_ending_are_told(tmp_path):
    folder = tmp_path / "exports"
    folder.mkdir()
    assert "so it is no Trajectories folder" in refused(tmp_path, folder, "--lag", "0")
    archive = tmp_path / "log.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("log.csv", text(rows()))
    assert "is a zip archive. Unpack it" in refused(tmp_path, archive)
    table = tmp_path / "log.csv"
    pq.write_table(pa.Table.from_pylist(rows()), table)
    assert "is Parquet, not text. Rename it to end in .parquet" in refused(tmp_path, table)
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(table.read_bytes()[:400])
    assert "cannot be read as Parquet. Is it whole?" in refused(tmp_path, cut)


def test_workbooks_are_refused_like_texts(tmp_path):
    body = [HEADER, *([*row.values()] for row in rows(map=at(6, "<5", plain)))]
    path = tmp_path / "log.xlsx"
    workbook(path, ("North", body), ("South", body))
    assert "has 2 sheets. Name one, log.xlsx#North; its sheets: North, South." in refused(
        tmp_path, path
    )
    assert "is no sheet of the workbook" in refused(tmp_path, path, data=f"{path}#West")
    line = refused(tmp_path, path, data=f"{path}#North")
    assert "log.xlsx, column map: mixes numbers and text (limits" in line
    assert "1 of 40 rows fail, first at row 6" in line


def test_options_that_contradict_are_told_with_the_table(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(text(rows()))
    line = refused(tmp_path, path, *ROLES, "--reward", "map", "--dose", "map")
    assert "2 faults" in line
    assert "loss, reward" in line
    assert "action, dose" in line
