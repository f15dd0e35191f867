"""How a text is written is told from its beginning."""

import pytest

from etips.data.tables.dialect import recognise
from etips.errors import FileError


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
