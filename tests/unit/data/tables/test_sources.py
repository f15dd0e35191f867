"""Anything that is a table, opened or refused by what it is."""

import gzip
import re
import zipfile

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from random_cohorts import Cohort
from strategies import ROLES, TEXT, long_table, refusal_text, roles_of
from strategies import read_small as read
from strategies import small_table as table

from etips.data.tables.reading import read_table
from etips.data.tables.sources import (
    open_source,
    to_arrow,
    whole_column,
)
from etips.data.tables.table_files import find_file
from etips.data.tables.table_spec import TableSpec
from etips.errors import DataError, FileError, SettingError
from etips.notes import collecting_notes

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.Series([1, 2]), r"^table: must be a frame, not a series\.$"),
        (pl.Series([1, 2]), r"^table: cannot be read as an Arrow table\.$"),
        ([[1, 2]], r"^table: must be a path or a pandas, polars or Arrow table\.$"),
        (pd.DataFrame({1: [1], "1": [2]}), r"^table: column names must be distinct; "),
        (
            pd.DataFrame([[1] * 5], columns=["a", "b", "a", "b", "c"]),
            r'^table: .* distinct; "a", "b" occurs more than once\.',
        ),
        (
            pd.DataFrame({"s": pd.Series([1, TEXT, 2], dtype=object)}),
            r"^table, column s: must be of one type\. Turn it",
        ),
        (
            pd.DataFrame({"s": pd.Series([2**70, 1], dtype=object)}),
            r"^table, column s: must be of one type\. Turn it",
        ),
        (pl.DataFrame({"a\0b": [1]}), r"^table: column names must not hold NUL characters\.$"),
        (pd.DataFrame({"s": [1j]}), r"^table, column s: must be of one type\. Turn it"),
    ],
)
def test_what_is_no_table_is_refused(frame, message):
    with pytest.raises(DataError, match=message) as caught:
        read(frame)
    assert TEXT not in refusal_text(caught.value)


def test_a_name_with_nul_in_an_arrow_table_is_kept_whole():
    """Sent through the Arrow interface both columns would be called `x`."""
    assert read(table(**{"x\0y": [1.0] * 6})).schema.sequence == ("x", "x\0y")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("no.csv", None, r"no\.csv: is not a file that exists\.$"),
        (
            "log.xlsx",
            b"x",
            r"log\.xlsx: is text, not an Excel workbook\. Rename it to end in \.csv\.$",
        ),
        ("e.csv", b"", r"e\.csv: is empty: 0 bytes\. Was it downloaded or copied whole\?$"),
        ("e.parquet", b"", r"e\.parquet: is empty: 0 bytes\."),
        ("f.parquet", b"PAR1", r"f\.parquet: cannot be read as Parquet\. Is it whole\?$"),
        ("e.csv.gz", b"no gzip", r"e\.csv\.gz: is not compressed as its name says\. Is it whole"),
        (
            "f.csv.gz",
            b"\x1f\x8bno",
            r"f\.csv\.gz: cannot be read as CSV\. Is it whole, and UTF-8\?$",
        ),
        ("z.csv", b"s,t,a,l,x\n", r"^z\.csv: must have at least one row\.$"),
        (
            "r.csv",
            b"s,t,a,l,x\n1,0,0,1,1\n1,1\n1,2,0,1,1\n1,3,0,1,1,1\n",
            r"^r\.csv: every row must have as many fields as the header; "
            r"2 of 4 rows fail, first at row 1\. A comma inside",
        ),
        (
            "d.csv",
            b"s,s,t\n1,2,3\n",
            r"^d\.csv: column names must be distinct; ",
        ),
        (
            "t.csv",
            b"s,t,a,l,x\n1,0,0,1,1\n1,1,0,1,kanarienvogel\n",
            r"^t\.csv, column x: mixes numbers and text; 1 of 2 rows fail, first at row 1\. Write ",
        ),
    ],
)
def test_a_file_that_is_no_table_is_refused_by_name(tmp_path, name, content, message):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises((DataError, FileError), match=message) as caught:
        read(path)
    assert TEXT not in refusal_text(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_column_names_that_repeat_in_a_ragged_file_are_refused_not_a_traceback(tmp_path):
    """The reader stumbles first over the types, and the second reading over the names."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"s,s,t\n" + b"1,2,3\n" * 2_000_000 + b"x,y,z\n")
    with pytest.raises(DataError, match=r"^a\.csv: column names must be distinct; "):
        read(path)


def many_rows(path, last):
    """More rows than the reader looks at together, and one more."""
    path.write_text("s,t,a,l,x\n" + "".join(f"1,{i},0,1,7\n" for i in range(MANY)) + last)
    return path


MANY = 1_200_000


def test_a_number_with_a_fraction_far_down_a_csv_is_no_fault(tmp_path):
    """The first block says whole numbers."""
    assert read(many_rows(tmp_path / "a.csv", f"1,{MANY},0,1,7.5\n")).sequence[-1] == 7.5


def test_a_ragged_row_far_down_a_csv_is_refused_by_its_row(tmp_path):
    path = many_rows(tmp_path / "a.csv", f"1,{MANY},0,1\n")
    message = rf"^a\.csv: every row must have .* 1 of {MANY + 1} rows fail, first at row {MANY}\."
    with pytest.raises(DataError, match=message):
        read(path)


def test_text_far_down_a_csv_is_refused_by_its_row(tmp_path):
    path = many_rows(tmp_path / "a.csv", f"1,{MANY},0,1,{TEXT}\n")
    message = rf"^a\.csv, column x: mixes numbers and text; 1 of .* first at row {MANY}\."
    with pytest.raises(DataError, match=message) as caught:
        read(path)
    assert TEXT not in refusal_text(caught.value)


NULLS = ["", "NA", "N/A", "#N/A", "<NA>", "null", "NULL", "None"]
CSV = "s,t,a,l,x\n1,0,0,1,1.5\n1,1,1,0,2.5\n2,0,,,3.5\n2,1,1,NA,4.5\n2,2,0,1,5.5\n"


@pytest.mark.parametrize(
    "content",
    [
        CSV,
        "\ufeff" + CSV,
        CSV.replace("\n", "\r\n"),
        CSV.replace("\n", "\n\n"),
        CSV.rstrip("\n"),
        CSV.replace("1,1,1,0,2.5", '"1","1","1","0","2.5"'),
        *(CSV.replace(",NA,", f",{null},") for null in NULLS),
    ],
    ids=["plain", "BOM", "CRLF", "blank lines", "no last newline", "quotes", *NULLS],
)
def test_the_spellings_of_a_csv_do_not_matter(tmp_path, content):
    path = tmp_path / "a.csv"
    path.write_bytes(content.encode())
    data = read(path)
    assert data.sequence.ravel().tolist() == [1.5, 2.5, 3.5, 4.5, 5.5]
    assert data.action.tolist() == [0, 1, -1, 1, 0]
    assert data.n_decisions == 2


def test_the_ending_of_a_file_name_may_be_in_capitals(tmp_path):
    for name, content in (("A.CSV", CSV.encode()), ("A.CSV.GZ", gzip.compress(CSV.encode()))):
        (tmp_path / name).write_bytes(content)
        assert read(tmp_path / name).n_steps == 5


def test_all_roles_are_named_as_the_table_names_them():
    data = Cohort(seed=0).make()
    found = read_table(long_table(data), **roles_of(data))
    roles = found.schema.roles
    assert {role: getattr(roles, role) for role in ROLES} == ROLES
    assert (roles.propensity, roles.group) == ("chance", "patient")


def test_text_of_a_frame_is_left_alone_until_somebody_asks():
    source = open_source(pa.table({"id": ["007", "7"], "x": ["1,5", "2"], "w": ["a", "1"]}))
    assert source.form("id")[0].kind == "number"
    assert source.form("w")[1].rule == "mixes numbers and text"
    settled = source.settled(["x"])
    assert whole_column(settled, "x").to_pylist() == [1.5, 2.0]
    assert settled.columns["x"] == pa.float64()
    assert whole_column(settled, "id").to_pylist() == ["007", "7"]


def test_all_columns_that_cannot_be_settled_are_told_at_once():
    source = open_source(pa.table({"a": ["1", "b"], "b": ["01/02/2020", "02/03/2020"]}))
    with pytest.raises(
        DataError, match=r"^2 faults: \(1\) table, column a: .*; \(2\) .*--dates dmy"
    ):
        source.settled(["a", "b"])


def test_what_is_wrong_with_a_column_waits_until_it_is_used(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,x\nA1,1\n12,2\n")
    source = open_source(path)
    assert list(source.faults) == ["id"]
    assert whole_column(source, "id").to_pylist() == ["A1", "12"]


@pytest.mark.parametrize(
    ("option", "message"),
    [({"decimal": ";"}, r'^decimal: must be "," or'), ({"dates": "ymd"}, "^dates: ")],
)
def test_a_habit_that_is_none_is_refused(option, message):
    with pytest.raises(SettingError, match=message):
        open_source(pa.table({"a": [1]}), TableSpec(**option))


def test_all_columns_of_mixed_types_are_told_at_once():
    frame = pd.DataFrame({"a": [1, "x"], "b": [1, 2], "c": [{1}, 2]}, dtype=object)
    with pytest.raises(
        DataError, match=r"^2 faults: \(1\) table, columns a, c: must be of one type"
    ):
        to_arrow(frame)


def test_an_index_is_no_column():
    frame = pd.DataFrame({"a": [1, 2]}, index=["p", "q"])
    assert to_arrow(frame)[0].column_names == ["a"]


def test_a_column_that_stands_in_the_index_is_told():
    frame = pd.DataFrame({"stay": [1, 2], "a": [0, 1], "y": [0, 1], "x": [3, 4]}).set_index("stay")
    assert to_arrow(frame)[1] == ("stay",)
    remedy = r"column stay: is missing .* It is the index of the frame: pass frame\.reset_index\(\)"
    with pytest.raises(DataError, match=remedy):
        read_table(frame, stay="stay", action="a", loss="y")
    with collecting_notes() as notes:
        read_table(frame, action="a", loss="y")
    assert notes[0] == (
        "the index of the frame (stay) is not read; frame.reset_index() makes columns"
    )


def test_names_in_several_levels_are_refused_with_the_line_that_joins_them():
    frame = pd.DataFrame([[1, 2.0]], columns=pd.MultiIndex.from_tuples([("id", 7), ("hr", "max")]))
    message = r"^table: must have one name a column, not several levels\. Join them: (.*)\.$"
    with pytest.raises(DataError, match=message) as caught:
        to_arrow(frame)
    joined = re.match(message, str(caught.value))[1].removeprefix("frame.columns = ")
    frame.columns = eval(joined, {"frame": frame})
    assert to_arrow(frame)[0].column_names == ["id_7", "hr_max"]


def put(folder, name, content):
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", r"is empty: 0 bytes"),
        ("a.csv", b"PAR1\0\0", r"is Parquet, not text\. Rename it to end in \.parquet\."),
        ("a.parquet", b"a,b\n1,2\n", r"is text, not Parquet\. Rename it to end in \.csv\."),
        ("a.xlsx", b"a,b\n1,2\n", r"is text, not an Excel workbook\."),
        ("a.feather", b"PAR1", r"is Parquet, not an Arrow file\."),
        ("a.csv", b"\x1f\x8b\x08", r"is compressed.*Rename it to a\.csv\.gz\."),
        ("a.csv.gz", b"a,b\n", r"is not compressed as its name says\."),
        ("a.xls", b"\xd0\xcf\x11\xe0\xa1", r"is an old Excel workbook \(\.xls\)\. Save it as"),
        ("a.xls", b"<html><table>", r"is an HTML page\."),
        ("a.csv", b"\n<!DOCTYPE html>\n", r"is an HTML page\."),
        ("a.sav", b"$FL2@(#)", r"is an SPSS file\. Export it as CSV"),
        ("a.dta", b"<stata_dta>", r"is a Stata file\."),
        ("a.csv", b'{"a": 1}', r"is JSON\."),
        ("a.csv", b'[\n {"a": 1}]', r"is JSON\."),
        ("a.db", b"SQLite format 3\0", r"is an SQLite database\."),
        ("a.dat", b"a;b\n1;2\n", r"must end in \.csv, .*rename it to \.csv\."),
        ("a", b"PAR1\0", r"must end in .*It is Parquet by its content: rename it\."),
        ("a.zip", b"PK\x03\x04 no", r"is a zip archive\. Unpack it"),
    ],
)  # fmt: skip
def test_what_is_not_what_its_name_says_is_told(tmp_path, name, content, message):
    with pytest.raises(FileError, match=message):
        find_file(put(tmp_path, name, content))


def test_a_folder_and_a_file_that_is_not_there_are_told(tmp_path):
    with pytest.raises(FileError, match=r"is a folder, not a table\."):
        find_file(tmp_path)
    with pytest.raises(FileError, match=r"is not a file that exists"):
        find_file(tmp_path / "no.csv")


def test_a_sheet_is_named_behind_the_workbook(tmp_path):
    path = tmp_path / "a#1.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", "")
    assert find_file(path).sheet is None
    found = find_file(f"{path}#Ward 7")
    assert (found.path, found.sheet, found.content) == (path, "Ward 7", "workbook")
    text = put(tmp_path, "a.csv", b"a,b\n")
    with pytest.raises(FileError, match=r"names a sheet, but is no workbook\."):
        find_file(f"{text}#Ward 7")


@pytest.mark.parametrize(
    ("name", "compression"),
    [
        ("a.CSV", None),
        ("a.tsv", None),
        ("a.txt", None),
        ("a.csv.gz", "gzip"),
        ("a.csv.zst", "zstd"),
    ],
)
def test_text_by_its_endings(tmp_path, name, compression):
    magic = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}
    found = find_file(put(tmp_path, name, magic.get(compression, b"a,b\n")))
    assert (found.content, found.compression) == ("text", compression)
