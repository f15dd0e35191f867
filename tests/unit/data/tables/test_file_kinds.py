"""What a file is, by its bytes and its name."""

import zipfile

import pytest

from etips.data.tables.file_kinds import find_file
from etips.errors import FileError


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
