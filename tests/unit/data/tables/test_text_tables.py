"""Text with fields and sheets of workbooks: how they are written, and what is read or refused."""

import bz2
import gzip
import zipfile
from datetime import date, datetime, time

import pyarrow as pa
import pytest

from etips.data.tables.delimited import recognise
from etips.data.tables.sources import name_columns, open_source, whole_column, without_marks
from etips.data.tables.table_spec import TableSpec
from etips.errors import DataError, FileError
from etips.notes import collecting_notes

PLAIN = "stay,x,ward\n1,1.5,Süd\n2,,Ost\n3,12.25,Süd\n"


def read(folder, content, name="a.csv", **options):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    source = open_source(path, TableSpec(**options))
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


def told(text, encoding="utf-8"):
    content = text if isinstance(text, bytes) else text.encode(encoding)
    return recognise("a.csv", content, whole=True)


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a,b,c\n1,2,3\n", ","),
        ("a;b;c\n1,5;2,5;3\n", ";"),
        ("a\tb\n1\t2\n", "\t"),
        ("a|b\n1|2\n", "|"),
        ("Alter, Jahre;Puls, /min;x\n40;80,5;1\n41;70;2\n", ";"),
        ('"a;b",c\n1,2\n', ","),
        ("sep=;\na;b\n1;2\n", ";"),
        ('"sep=|"\r\na|b\r\n', "|"),
        ("x\n1\n2\n", ","),
        ('a;"b\nc"\n1;"2\n3"\n', ";"),
    ],
)
def test_the_delimiter_is_what_cuts_rows_like_the_header(text, delimiter):
    assert told(text).delimiter == delimiter


def test_lines_above_the_header_are_told():
    assert told("sep=;\na;b\n").skip == 1
    with pytest.raises(FileError, match=r"has lines above the header.*semicolons\. Delete"):
        told("Ward 7 of the hospital\n\na;b;c\n1;2;3\n4;5;6\n")


@pytest.mark.parametrize(
    ("encoding", "called"),
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8"),
        ("utf-16", "utf-16"),
        ("utf-16-le", "utf-16-le"),
        ("utf-16-be", "utf-16-be"),
        ("latin-1", "cp1252"),
        ("cp1252", "cp1252"),
    ],
)
def test_the_encoding_is_told(encoding, called):
    found = told("Größe;Gewicht\n1;2\n", encoding)
    assert found.encoding == called
    assert found.header == ("Größe", "Gewicht")


@pytest.mark.parametrize(
    "content", [b"a,b\n\x81\x8d,1\n", b"\xff\x01\x02,b\n", "ä,b\n".encode("utf-32")]
)
def test_what_is_no_text_is_refused(content):
    with pytest.raises(FileError, match=r"Save it as UTF-8"):
        told(content)


def test_a_file_of_blank_lines_has_no_header():
    with pytest.raises(FileError, match=r"holds no header"):
        told("\n\n\n")


@pytest.mark.parametrize(
    ("text", "rule"),
    [("a b c\n1 2 3\n4 5 6\n", "has spaces between"), ("a:b\n1:2\n3:4\n", "has colons between")],
)
def test_other_delimiters_are_refused(text, rule):
    with pytest.raises(FileError, match=rule):
        told(text)


def test_columns_whose_cells_begin_with_zeros_are_told():
    assert told("id,x,n\n7,0.5,0\n007,0,10\n").zeros == ("id",)


def test_two_delimiters_that_fit_alike_are_refused():
    with pytest.raises(FileError, match=r"may have semicolons or commas between.*Write sep=;"):
        told("a,b;c\n1,2;3\n4,5;6\n")
    assert told("sep=,\na,b;c\n1,2;3\n4,5;6\n").delimiter == ","


def test_a_first_line_of_numbers_is_no_header_and_is_not_shown():
    """Its cells are a patient's."""
    message = r"^a\.csv: has numbers in its first line, not names\. Write the names of the columns"
    with pytest.raises(FileError, match=message) as caught:
        recognise("a.csv", b"4711,0,81.5,0\n4711,1,82.0,1\n", whole=True)
    assert "4711" not in str(caught.value)
    assert recognise("a.csv", b"0,1,2\n5,6,7\n", whole=True).header == ("0", "1", "2")


def test_a_first_line_with_numbers_among_names_is_asked_about(tmp_path):
    """It may be a patient's, or years in a wide table."""
    with collecting_notes() as notes:
        found = read(tmp_path, "Caucasian,61,0.5\nOther,48,1.5\n")
        read(tmp_path, "ward,x1,x2\nA,1,2\n")
    assert list(found) == ["Caucasian", "61", "0.5"]
    assert notes == [
        "a.csv: 2 of 3 names in its first line are numbers: is it a patient's? "
        "Then write names above it"
    ]


def test_columns_without_name_and_content_are_left_out():
    table = pa.Table.from_arrays(
        [pa.array([0, 1]), pa.array([5, 6]), pa.array([None, None])], ["", " x ", ""]
    )
    with collecting_notes() as notes:
        assert name_columns("a.csv", table).column_names == ["x"]
    assert notes == ["a.csv: 2 columns without a name were left out"]


def test_a_column_with_content_and_no_name_is_refused_by_its_number():
    table = pa.Table.from_arrays([pa.array([1, 2]), pa.array([5, 6])], ["a", ""])
    with pytest.raises(DataError, match=r"^a\.csv: column 2 has no name\. Give"):
        name_columns("a.csv", table)


def test_names_that_differ_by_spaces_alone_are_refused():
    table = pa.Table.from_arrays([pa.array([1]), pa.array([5])], ["a", "a "])
    with pytest.raises(DataError, match=r'must be distinct; "a" occurs'):
        name_columns("a.csv", table)


def test_what_one_column_leaves_open_another_settles(tmp_path):
    with collecting_notes() as notes:
        found = read(tmp_path, "a;b;c\n1,234;36,6;x \n2;-;y\n")
    assert found == {"a": [1.234, 2.0], "b": [36.6, None], "c": ["x", "y"]}
    assert notes == [
        "a.csv: decimal commas in columns a, b",
        'a.csv: "-" was read as missing in column b',
    ]


def test_columns_that_disagree_settle_nothing(tmp_path):
    (tmp_path / "a.csv").write_text("a;b;c\n1,234;36,6;1.5\n2;1,5;2.5\n")
    found = open_source(tmp_path / "a.csv")
    assert list(found.faults) == ["a"]
    assert whole_column(found, "b").to_pylist() == [36.6, 1.5]


def test_whole_numbers_that_look_like_dates_are_told(tmp_path):
    """HL7 writes times that way; as numbers, the hours between them would be nonsense."""
    columns = {"seen": [20240131, 20231201], "id": [20240199, 20230001]}
    columns |= {"minute": [202401312359, 202312010000], "unix": [1_700_000_000, 1_700_000_600]}
    columns |= {"second": [20240131235959, 20231201000000]}
    rows = [columns, *zip(*columns.values(), strict=True)]
    with collecting_notes() as notes:
        read(tmp_path, "\n".join(",".join(map(str, row)) for row in rows))
    rest = "looks like dates; they are read if written 2024-12-31"
    assert notes == [f"a.csv: column {name} {rest}" for name in ("seen", "minute", "second")]


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


def read_workbook(path, **options):
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
    found, _ = read_workbook(write(tmp_path / "a.xlsx", Ward=rows))
    assert found == {
        "stay": [1, 2],
        "x": [1.5, 2.0],
        "ward": ["a", "b"],
        "vent": [True, False],
        "seen": [datetime(2024, 1, 2, 3, 4), datetime(2024, 1, 3)],
    }


def test_numbers_kept_as_text_are_numbers_and_mixtures_are_told(tmp_path):
    rows = [["a", "b", "c"], [1, "1,5", 1], ["2", "2,5", "<5"], ["-", None, 3]]
    found, source = read_workbook(write(tmp_path / "a.xlsx", Ward=rows))
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
    assert read_workbook(f"{path}#Two")[0] == {"a": [2]}


def test_a_damaged_or_empty_workbook_is_refused(tmp_path):
    path = write(tmp_path / "a.xlsx", One=[])
    with pytest.raises(FileError, match=r"has an empty sheet"):
        open_source(path)
    content = write(path, One=[["a", "b"], [1, 2]]).read_bytes()
    flipped = bytearray(content)
    with zipfile.ZipFile(path) as archive:
        sheet = archive.getinfo("xl/worksheets/sheet1.xml").header_offset
    flipped[sheet + 60 : sheet + 90] = bytes(30)  # packed data: zlib's own error
    for damaged in (
        *(content[:cut] for cut in (200, len(content) // 2, len(content) - 30)),
        bytes(flipped),
    ):
        path.write_bytes(damaged)
        with pytest.raises(FileError, match=r"is a zip archive|cannot be read as an Excel"):
            open_source(path)


def test_without_openpyxl_the_remedy_is_told(tmp_path, monkeypatch):
    path = write(tmp_path / "a.xlsx", One=[["a"], [1]])
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(FileError, match=r"needs openpyxl.*etips\[excel\]"):
        open_source(path)


def test_texts_and_numbers_are_emptied_in_every_column():
    table = pa.table(
        {
            "text": ["a", " Not Done", "999", None],
            "whole": [1, 999, 3, None],
            "part": [1.5, 999.0, -9.0, None],
            "flag": [True, False, True, None],
            "level": pa.array(["not done", "x", "x", None]).dictionary_encode(),
        }
    )
    found = without_marks(table, ["not done", "999", "-9"]).to_pydict()
    assert found == {
        "text": ["a", None, None, None],
        "whole": [1, None, 3, None],
        "part": [1.5, None, None, None],
        "flag": [True, False, True, None],
        "level": [None, "x", "x", None],
    }


def test_a_mark_of_one_column_is_left_in_others():
    table = pa.table({"a": [1, 9], "b": [9, 2], "c": ["x=9", "9"]})
    found = without_marks(table, ["a=9", "x=9"]).to_pydict()
    assert found == {"a": [1, None], "b": [9, 2], "c": [None, "9"]}


def test_nothing_changes_without_marks_or_where_there_are_none():
    table = pa.table({"x": [1, 2], "level": pa.array(["a", "b"]).dictionary_encode()})
    assert without_marks(table, []) is table
    assert without_marks(table, ["9"]).schema == table.schema
