"""Cells as people write them: numbers, units, limits, dates."""

import math
from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest
from strategies import TEXT

from etips.data.tables.text_cells import Habits, TextCells, read_text


def read(texts, **habits):
    column = pa.chunked_array([pa.array(texts, pa.string())])
    form, fault = read_text("log.csv", "x", TextCells.of(column), Habits(**habits))
    return form, fault, form.apply(column).to_pylist()


@pytest.mark.parametrize(
    ("text", "order", "stamp"),
    [
        ("2024-12-31", "dmy", "2024-12-31"),
        ("2024/1/2 03:04", "mdy", "2024-01-02T03:04"),
        ("31/12/2024", "dmy", "2024-12-31"),
        ("12/31/2024 11:05 pm", "mdy", "2024-12-31T23:05"),
        ("12/31/2024 12:05 AM", "mdy", "2024-12-31T00:05"),
        ("1.2.2024", "mdy", "2024-02-01"),  # with dots the day always stands first
        ("01-02-2024T10:20:30.25", "dmy", "2024-02-01T10:20:30.25"),
        ("14-Mar-2024", "dmy", "2024-03-14"),
        ("3. Mai 2024 8:15", "dmy", "2024-05-03T08:15"),
        ("15MAR2024:10:20:30", "dmy", "2024-03-15T10:20:30"),
        ("29.02.2024", "dmy", "2024-02-29"),
        ("2024-03-15T10:20:30Z", "dmy", "2024-03-15T10:20:30"),
        ("2024-03-15 10:20:30.5+01:00", "dmy", "2024-03-15T09:20:30.5"),
        ("2024-03-15 22:20:30-0430", "dmy", "2024-03-16T02:50:30"),
        ("2024-03-15 10:20+02", "dmy", "2024-03-15T08:20"),
    ],
)
def test_a_date_is_read(text, order, stamp):
    _, fault, found = read([text, None], dates=order)
    assert fault is None
    assert found == [np.datetime64(stamp, "us").item(), None]


@pytest.mark.parametrize("text", ["31.02.2024", "29.02.2023", "2024-13-01", "00.01.2024",
                                  "01.01.2024 25:00", "01.01.0000", "4 Foo 2024"])  # fmt: skip
def test_a_date_that_does_not_exist_is_told(text):
    assert read([text])[1].rule == "must be dates that exist"


def test_what_is_no_date_is_none():
    assert read(["a", "12:30", "1.2.3", None])[0].kind == "text"


@pytest.mark.parametrize(
    ("texts", "habits", "wanted"),
    [
        (["1,5", "2", None], {}, [1.5, 2, None]),
        (["1.5", " 2 ", "-"], {}, [1.5, 2, None]),
        (["1,5", "1,234"], {}, [1.5, 1.234]),  # the first tells how the second is meant
        (["0,123", "1,234"], {}, [0.123, 1.234]),
        (["1,234", "2"], {"decimal": ","}, [1.234, 2]),
        (["1.234", "2"], {"decimal": "."}, [1.234, 2]),
        (["\u22121,5", "2"], {}, [-1.5, 2]),
        (["12", "n/a", "?", "."], {}, [12, None, None, None]),
        (["a", "b", "-"], {}, ["a", "b", "-"]),
        (["+", "-"], {}, ["+", "-"]),
        (["<18", "18-65", ">65"], {}, ["<18", "18-65", ">65"]),
        (["5 mg", "10mg", "-"], {}, [5, 10, None]),
        (["21%", "40 %"], {}, [21, 40]),
        (["5,2 mmol/l", "4,75 mmol/L"], {}, [5.2, 4.75]),
        (["1a", "2a", "3b"], {}, ["1a", "2a", "3b"]),
        (["1c", "2c", "3c"], {}, ["1c", "2c", "3c"]),  # stages, not degrees
        (["1 c", "2 c"], {}, [1, 2]),
        ([f"{n}h" for n in range(20)], {}, [*range(20)]),
        (["36.6", "1,234", "1,234.5"], {}, [36.6, 1234, 1234.5]),  # the last shows the habit
        (["1,234.5", "1,234", "7"], {}, [1234.5, 1234, 7]),
        (["1.234,5", "12.345.678"], {}, [1234.5, 12345678]),
        (["1 234", "1'234'567,5", "12"], {}, [1234, 1234567.5, 12]),
        (["1,234", "7"], {"decimal": "."}, [1234, 7]),
        (["850", "1,234", "399,999"], {}, [850, 1234, 399999]),
        (["<5", "85+", "> 90", "60.5"], {"limits": True}, [5, 85, 90, 60.5]),
        (["<5 mg/l", "7 mg/l"], {"limits": True}, [5, 7]),
        (["<18", "18-65", ">65"], {"limits": True}, ["<18", "18-65", ">65"]),
        (["2", "unknown", "ND", "not done", "#VALUE!"], {}, [2, None, None, None, None]),
        (["13/02/2024", "1/2/2024", "-"], {}, [datetime(2024, 2, 13), datetime(2024, 2, 1), None]),
        (["1/2/2024"], {"dates": "mdy"}, [datetime(2024, 1, 2)]),
        (["2/13/2024", "1/2/2024"], {}, [datetime(2024, 2, 13), datetime(2024, 1, 2)]),
        ([None, None], {}, [None, None]),
    ],
)  # fmt: skip
def test_a_column_is_read_as_what_it_is(texts, habits, wanted):
    _, fault, found = read(texts, **habits)
    assert fault is None
    assert found == wanted


@pytest.mark.parametrize(
    ("texts", "habits", "rule", "rows", "fix"),
    [
        (["1", TEXT, "3"], {}, "mixes numbers and text", 1, "--categorical x"),
        (["<0.1", "2", "3 mg"], {}, "(limits such as < or >, numbers with a unit)", 2, "--drop x"),
        (["1.5", "1,5"], {}, "mixes decimal points and decimal commas", 1, "one of them"),
        (["1.5", "1,234"], {}, "has separators of thousands", 1, "1234.5"),
        (["1,5", "1.234"], {}, "has separators of thousands", 1, "1234.5"),
        (["1,234.5", "1.234,5"], {}, "mixes decimal points and decimal commas", 1, "one of them"),
        (["<5", "7"], {}, "limits such as < or >", 1, '--limits value (limits="value")'),
        (["nothing", "7"], {}, "mixes numbers and text", 1, '--na TEXT (na=["TEXT"])'),
        (["5 mg", "5 g"], {}, "holds numbers with different units", 2, "unit into"),
        (["3 months", "2 years"], {}, "holds numbers with different units", 2, "unit into"),
        ([f"{n}/80" for n in range(90, 120)], {}, "holds two numbers in a cell", 30, "own"),
        (["40%", "0.4"], {}, "mixes numbers and text (numbers with a unit)", 1, "numbers only"),
        (["2024-01-01T08:00Z", "2024-01-01 09:00"], {}, "with and without a time zone", 1, "none"),
        (["1.234", "1,234"], {}, "may hold fractions or thousands", 2, "--decimal ,"),
        (["1,234", "7"], {}, "may hold fractions or thousands", 1, 'decimal=","'),
        (["850", "12000", "1,234"], {}, "may hold fractions or thousands", 1, 'decimal=","'),
        (["850", "1,234", "1.234"], {}, "may hold fractions or thousands", 2, 'decimal=","'),
        (["01/02/2024", "03/04/2024"], {}, "may be day/month or month/day", 2, 'dates="dmy"'),
        (["13/02/2024", "02/13/2024"], {}, "mixes day/month and month/day", 1, "2024-12-31"),
        (["31.02.2024", "01.02.2024"], {}, "must be dates that exist", 1, "Mend"),
        (["01.02.2024", "02.02.2024", TEXT], {}, "mixes dates and text", 1, "2024-12-31"),
        (["01/02/24", "03/04/24"], {}, "has years of two digits", 2, "all four"),
        (["mmHg", "60", "70"], {}, "mixes numbers and text", 1, "second line of the header"),
        ([*map(str, range(30)), TEXT], {}, "mixes numbers and text", 1, "footer"),
    ],
)  # fmt: skip
def test_a_column_that_can_be_meant_otherwise_is_refused(texts, habits, rule, rows, fix):
    _, fault, found = read(texts, **habits)
    assert found == texts  # text is still text, for a part that needs no more
    assert fault is not None
    assert fault.n_failing == rows
    assert rule in fault.rule
    assert fix in str(fault)
    assert TEXT not in str(fault)


def test_whole_numbers_stay_exact():
    form, _, found = read(["900719925474099301", "-", "900719925474099302"])
    assert found == [900719925474099301, None, 900719925474099302]
    assert form.whole
    assert form.missing == ("-",)


def test_nan_is_not_null():
    _, _, found = read(["NaN", "1,5", "-"])
    assert math.isnan(found[0])
    assert found[1:] == [1.5, None]


def test_a_part_is_read_as_the_whole_was():
    form, _, _ = read(["1,5", "-", "1,234"])
    part = pa.chunked_array([pa.array(["1,234", "-"])])
    assert form.apply(part).to_pylist() == [1.234, None]
    assert form.apply(part).type == form.type
