"""Texts with fields, as hospitals write them."""

import bz2
import gzip
from datetime import datetime, time

import pyarrow as pa
import pytest

from etips.data.tables.sources import open_source, whole_column
from etips.errors import DataError, FileError
from etips.notes import collecting_notes

PLAIN = "stay,x,ward\n1,1.5,Süd\n2,,Ost\n3,12.25,Süd\n"


def read(folder, content, name="a.csv", **options):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    source = open_source(path, **options)
    return {column: whole_column(source, column).to_pylist() for column in source.columns}


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_the_way_it_is_written_does_not_matter(tmp_path, delimiter, decimal, encoding):
    wanted = read(tmp_path, PLAIN)
    text = PLAIN.replace(",", delimiter).replace(".", decimal)
    assert read(tmp_path, text.encode(encoding)) == wanted


def test_packed_text_is_unpacked(tmp_path):
    wanted = read(tmp_path, PLAIN)
    packed = {"gz": gzip.compress(PLAIN.encode()), "bz2": bz2.compress(PLAIN.encode())}
    with pa.CompressedOutputStream(str(tmp_path / "b.csv.zst"), "zstd") as stream:
        stream.write(PLAIN.encode())
    packed["zst"] = (tmp_path / "b.csv.zst").read_bytes()
    for ending, content in packed.items():
        assert read(tmp_path, content, f"a.csv.{ending}") == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("sep=;\na;b\n1;2\n", {"a": [1], "b": [2]}),
        ("a;b;\n1;2;\n3;4;\n", {"a": [1, 3], "b": [2, 4]}),
        ("a;b\n1;2;\n3;4;\n", {"a": [1, 3], "b": [2, 4]}),
        ("a;b\n1.5;2;\n3.25;4;\n", {"a": [1.5, 3.25], "b": [2, 4]}),
        (",a\n0,5\n1,6\n", {"a": [5, 6]}),
        ("id,a\n007,5\n7,6\n", {"id": ["007", "7"], "a": [5, 6]}),
        ("a,b\n8:30,1\n23:05:10,2\n", {"a": [time(8, 30), time(23, 5, 10)], "b": [1, 2]}),
        ("a,b\n1,2\n,\n3,4\n,\n,\n", {"a": [1, None, 3], "b": [2, None, 4]}),
        (' a , b\n1, "x"\n2,y \n', {"a": [1, 2], "b": ['"x"', "y"]}),
        ('a,b\n1,"two\nlines"\n2,"say ""yes"""\n', {"a": [1, 2], "b": ["two\nlines", 'say "yes"']}),
        ('a,b\n"1,5",1\n"2,25",2\n', {"a": [1.5, 2.25], "b": [1, 2]}),
        ("a;b\n36.6;1.234\n37.1;2.345\n", {"a": [36.6, 37.1], "b": [1.234, 2.345]}),
        ("a;b\n36,6;1,234\n37,1;2,345\n", {"a": [36.6, 37.1], "b": [1.234, 2.345]}),
        ("a,b\n7.350,1.234\n", {"a": [7.35], "b": [1.234]}),
        ("a;b\n01.02.2024;x\n", {"a": [datetime(2024, 2, 1)], "b": ["x"]}),
        ('"a\n(mm)",b\n1,2\n3,4\n', {"a (mm)": [1, 3], "b": [2, 4]}),
        ("a;b\n;1\nNA;2\n", {"a": [None, None], "b": [1, 2]}),
        ("a;b\n1.234;36,6\n5.678;37,1\n", {"a": [1234, 5678], "b": [36.6, 37.1]}),
        ('a,b\n"1,234",36.6\n"5,678",37.1\n', {"a": [1234, 5678], "b": [36.6, 37.1]}),
        ("a;b\n1.234,5;1\n", {"a": [1234.5], "b": [1]}),
        ("a,b\n5 mg,1\n7 mg,2\n", {"a": ["5 mg", "7 mg"], "b": [1, 2]}),  # may be a treatment
    ],
)  # fmt: skip
def test_habits_of_programs_and_people_are_known(tmp_path, text, wanted):
    assert read(tmp_path, text) == wanted


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("a;b\n1.234;x\n5.678;y\n", "may hold fractions or thousands"),
        ('a,b\n"1,234",x\n"5,678",y\n', "may hold fractions or thousands"),
        ("a;b\n1.234;36,6\n5,5;37,1\n", "has separators of thousands"),
        ("a;b\n01/02/2024;1\n", "may be day/month or month/day"),
        ("a;b\n<0,1;1\n2,5;1\n", r"mixes numbers and text"),
    ],
)
def test_a_column_that_may_be_another_number_is_not_read_as_one(tmp_path, text, rule):
    path = tmp_path / "a.csv"
    path.write_text(text)
    source = open_source(path)
    assert list(source.faults) == ["a"]
    assert rule in str(source.faults["a"])
    assert source.columns["a"] == pa.string()


def test_an_option_settles_what_the_file_leaves_open(tmp_path):
    text = "a;b\n1.234;01/02/2024\n5.678;03/04/2024\n"
    found = read(tmp_path, text, decimal=".", dates="mdy")
    assert found == {"a": [1.234, 5.678], "b": [datetime(2024, 1, 2), datetime(2024, 3, 4)]}
    found = read(tmp_path, text.replace(".", ","), decimal=",", dates="dmy")
    assert found == {"a": [1.234, 5.678], "b": [datetime(2024, 2, 1), datetime(2024, 4, 3)]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,5,2\n3,4\n", r"as many fields as the header; 1 of 2 rows fail.*A comma inside"),
        ("a,b\n1,2,3\n4,5,6\n", r"one field more in every row.*Give the first column a name"),
        ("a,b\n" + "1,2\n" * 30 + "(30 rows)\n", r"1 of 31 .* at row 30\. Are they a footer"),
        ("a,b,\n1,2,3\n", r"column 3 has no name"),
        ('a,b\n1,x\n2,"y\n3,z\n', r"ends inside a field in quotes\. Close"),
    ],
)  # fmt: skip
def test_a_text_that_does_not_fit_is_refused_with_the_remedy(tmp_path, text, message):
    with pytest.raises((DataError, FileError), match=message):
        read(tmp_path, text)


def test_latin_1_far_down_is_read_and_told(tmp_path):
    text = "a,b\n" + "1,x\n" * 100_000 + "2,Süd\n"
    with collecting_notes() as notes:
        found = read(tmp_path, text.encode("latin-1"))
    assert found["b"][-1] == "Süd"
    assert notes == ["a.csv: is not UTF-8, so it was read as Windows-1252 (latin-1)"]


def test_quoted_lines_across_blocks_are_read(tmp_path):
    row = '1,"' + "x\n" * 2000 + '"\n'
    found = read(tmp_path, "a,b\n" + row * 5_000)
    assert len(found["a"]) == 5_000


def test_two_thousand_columns_are_read(tmp_path):
    names = [f"c{n}" for n in range(2000)]
    rows = [";".join(["1,5", *["2,25"] * 1998, "a"]) for _ in range(5)]
    found = read(tmp_path, "\n".join([";".join(names), *rows]))
    assert found["c1"] == [2.25] * 5
    assert found["c1999"] == ["a"] * 5
