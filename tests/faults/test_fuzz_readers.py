"""D1 for the ways in which hospitals write: read as they were meant, or refused in one line."""

import io
import zipfile
from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cohorts import Cohort
from strategies import long_table, roles_of
from test_fuzz import attempt, edits, mutate

from etips.data.tables.sources import Source, open_source, whole_column
from etips.errors import EtipsError

COHORT = Cohort(seed=11, n_stays=4, longest=4)

# ---- numbers and dates are those that were written ----------------------------------------------

amounts = st.lists(
    st.one_of(st.none(), st.integers(-9_999_999, 9_999_999).map(lambda n: n / 1000)),
    min_size=1,
    max_size=8,
)


def spell(value, decimal, places, group):
    """A number as a country writes it."""
    if value is None:
        return ""
    text = f"{value:,.{places}f}" if group else f"{value:.{places}f}"
    return text.translate(str.maketrans({",": group or "", ".": decimal}))


@settings(max_examples=300)
@given(
    columns=st.lists(amounts, min_size=1, max_size=3),
    decimal=st.sampled_from([".", ","]),
    places=st.integers(0, 4),
    grouped=st.booleans(),
    delimiter=st.sampled_from([",", ";", "\t", "|"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1"]),
)
def test_a_number_is_never_read_as_another(
    tmp_path_factory, columns, decimal, places, grouped, delimiter, encoding
):
    n, group = max(map(len, columns)), {".": ",", ",": "."}[decimal] if grouped else None
    columns = [[*own, *[None] * (n - len(own))] for own in columns]
    texts = [[spell(value, decimal, places, group) for value in own] for own in columns]
    names = [f"größe{k}" for k in range(len(columns))]
    rows = [names, *([f'"{cell}"' for cell in row] for row in zip(*texts, strict=True))]
    path = tmp_path_factory.getbasetemp() / "numbers.csv"
    path.write_bytes("\n".join(delimiter.join(row) for row in rows).encode(encoding))
    try:
        source = open_source(path)
    except EtipsError:
        return
    for name, own in zip(names, columns, strict=True):
        if pa.types.is_string(source.columns[name]):
            assert name in source.faults or not any(own)
            continue
        found = np.array(whole_column(source, name).to_pylist(), np.float64)
        meant = np.array([np.nan if v is None else round(v, places) for v in own], np.float64)
        assert np.isnan(meant[source.n_rows :]).all()  # empty rows at the end
        meant = meant[: source.n_rows]
        assert np.array_equal(found, meant, equal_nan=True) or excused(texts, decimal, delimiter)


def excused(texts, decimal, delimiter):
    """With commas between fields, `1.234` alone is a fraction; nobody writes thousands so there."""
    marks = [cell for own in texts for cell in own if "." in cell]
    return (
        delimiter == "," and decimal == "," and all(len(m.rpartition(".")[2]) == 3 for m in marks)
    )


@settings(max_examples=150)
@given(
    days=st.lists(st.dates(date(1900, 1, 1), date(2200, 1, 1)), min_size=1, max_size=8),
    form=st.sampled_from(["%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y-%m-%d", "%d-%m-%Y", "%d-%b-%Y"]),
    clock=st.booleans(),
)
def test_a_date_is_never_read_as_another(tmp_path_factory, days, form, clock):
    moments = [datetime(d.year, d.month, d.day, d.day % 24, d.month) for d in days]
    path = tmp_path_factory.getbasetemp() / "dates.csv"
    shown = [moment.strftime(form + (" %H:%M" if clock else "")) for moment in moments]
    path.write_text("\n".join(["seen;x", *(f"{text};1" for text in shown)]))
    source = open_source(path)
    if pa.types.is_string(source.columns["seen"]):
        assert "may be day/month" in str(source.faults["seen"])
        return
    found = whole_column(source, "seen").cast(pa.timestamp("us")).to_pylist()
    meant = moments if clock else [m.replace(hour=0, minute=0) for m in moments]
    assert found == meant


# ---- bytes that were a valid file ----------------------------------------------------------------


def as_text(delimiter, decimal, encoding):
    table = long_table(COHORT.make()).to_pylist()
    rows = [list(table[0]), *([cell(value, decimal) for value in row.values()] for row in table)]
    return "\n".join(delimiter.join(row) for row in rows).encode(encoding)


def cell(value, decimal):
    if value is None:
        return ""
    return str(value).replace(".", decimal) if isinstance(value, float) else str(value)


def feather():
    sink = pa.BufferOutputStream()
    pyarrow.feather.write_feather(long_table(COHORT.make()), sink, compression="uncompressed")
    return sink.getvalue().to_pybytes()


VALID = {
    "semicolons.csv": as_text(";", ",", "latin-1"),
    "tabs.tsv": as_text("\t", ".", "utf-16"),
    "table.feather": feather(),
}


@pytest.mark.parametrize("kind", VALID)
@settings(max_examples=80)
@given(changes=edits())
def test_d1_a_file_of_any_kind_with_changed_bytes_is_read_or_refused(
    tmp_path_factory, kind, changes
):
    path = tmp_path_factory.getbasetemp() / kind
    path.write_bytes(mutate(VALID[kind], changes))
    attempt(path, **roles_of(COHORT.make()))


def workbook():
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    table = long_table(COHORT.make()).to_pylist()
    book.active.append(list(table[0]))
    for row in table:
        book.active.append(list(row.values()))
    content = io.BytesIO()
    book.save(content)
    with zipfile.ZipFile(content) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@settings(max_examples=60)
@given(changes=edits(), part=st.sampled_from(["sheet1.xml", "workbook.xml", "sharedStrings.xml"]))
def test_d1_a_workbook_with_changed_parts_is_read_or_refused(tmp_path_factory, changes, part):
    path = tmp_path_factory.getbasetemp() / "book.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in workbook().items():
            archive.writestr(name, mutate(content, changes) if name.endswith(part) else content)
    attempt(path, **roles_of(COHORT.make()))


ODD = st.one_of(
    st.text(max_size=5),
    st.sampled_from(
        ["", "-", ".", "n/a", "<0.1", "> 5", "1,5", "1.5", "1.234", "1,234", "1.234,5", "1 234"]
    ),
    st.sampled_from(["01/02/2024", "13.2.2024", "2024-01-02", "1/2/24", "5 mg", "ja", "TRUE", "٣"]),
)


@settings(max_examples=150)
@given(cells=st.lists(ODD, min_size=1, max_size=6), delimiter=st.sampled_from([";", "\t", ","]))
def test_d1_any_cells_are_read_or_refused(tmp_path_factory, cells, delimiter):
    path = tmp_path_factory.getbasetemp() / "cells.csv"
    rows = [f'"{cell}"{delimiter}{n}' for n, cell in enumerate(cells)]
    path.write_text("\n".join([f"x{delimiter}n", *rows]), "utf-8", errors="replace")
    try:
        source = open_source(path)
    except EtipsError:
        return
    assert isinstance(source, Source)
    assert all(len(whole_column(source, name)) == source.n_rows for name in source.columns)
    assert all(str(fault).isprintable() for fault in source.faults.values())
