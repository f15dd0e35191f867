"""Every refusal of a long table: one line with place, rule and row, without the value."""

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from strategies import CANARY, TEXT, refusal_text
from strategies import read_small as read
from strategies import small_table as table

from etips.data import read_table
from etips.errors import DataError, SettingError

NAN, INF = float("nan"), float("inf")

ONE = r"1 of 6 rows fail, first at row 4\."


def bad(column, value, name=None):
    """The plain table with `value` at row 4 of `column`."""
    values = table()[column].to_pylist()
    values[4] = value
    return table(**{name or column: values})


REFUSALS = {
    "missing column": (table(a=None), {}, r"^table, column a: is missing from the table\.$"),
    "renamed column": (
        table(a=None, A=[0] * 6),
        {},
        r"^table, column a: is missing from the table\. Do you mean A\?$",
    ),
    "missing static": (
        table(),
        {"static": ["q"]},
        r"^table, column q: is missing from the table\.$",
    ),
    "missing categorical": (
        table(),
        {"categorical": ["q"]},
        r"^table, column q: is missing from the table\.$",
    ),
    "duplicate step": (
        bad("t", 0),
        {},
        rf"^table, column t: must not occur twice in a stay; {ONE} Correct it, or put rows into",
    ),
    "action beyond": (
        bad("a", CANARY),
        {"n_actions": 3},
        rf"^table, column a: must be in 0\.\.2; {ONE} "
        r"Without n_actions \(--n-actions\) the numbers are labels\.$",
    ),
    "action huge": (bad("a", 1e308), {}, rf"^table, column a: must be below 2\*\*53; {ONE}$"),
    "action negative": (
        bad("a", -CANARY),
        {"n_actions": 3},
        rf"^table, column a: must be in 0\.\.2; {ONE} Without n_actions",
    ),
    "action not whole": (
        bad("a", CANARY + 0.5),
        {"n_actions": 3},
        rf"^table, column a: must be a whole number; {ONE}$",
    ),
    "action infinite": (bad("a", INF), {}, rf"^table, column a: must be finite; {ONE}$"),
    "action endless": (
        table(a=["0", "1", "2", "0", TEXT * 20, "2"]),
        {},
        rf"^table, column a: must be text of at most 100 characters; {ONE}$",
    ),
    "no action at all": (
        table(a=pa.nulls(6)),
        {},
        r"^table, column a: must hold at least one action\.$",
    ),
    "loss infinite": (
        bad("l", -INF),
        {},
        rf"^table, column l: must be finite; {ONE} Leave the cell empty where the loss",
    ),
    "loss NaN": (
        bad("l", NAN),
        {},
        rf"^table, column l: must be finite; {ONE} Leave the cell empty",
    ),
    "loss text": (
        table(l=["0", "1", "2", "0", TEXT, "2"]),
        {},
        rf"^table, column l: mixes numbers and text; {ONE} Write numbers only, or .* --na TEXT.*$",
    ),
    "loss all null": (
        table(l=pa.nulls(6)),
        {},
        r"^table: must hold at least one decision\. A decision is a step with an action, a loss",
    ),
    "propensity zero": (
        table(p=[0.5, 0.5, 0.5, 0.5, 0, 0.5]),
        {"propensity": "p"},
        rf"^table, column p: must be in \(0, 1\] at every decision; {ONE}$",
    ),
    "propensity above one": (
        table(p=[0.5, 0.5, 0.5, 0.5, float(CANARY), 0.5]),
        {"propensity": "p"},
        rf"^table, column p: must be in \(0, 1\] at every decision; {ONE}$",
    ),
    "propensity missing": (
        table(p=[0.5, 0.5, 0.5, 0.5, None, 0.5]),
        {"propensity": "p"},
        rf"^table, column p: must be in \(0, 1\] at every decision; {ONE}$",
    ),
    "eligible odd": (
        table(e=[0, 1, 0, 1, CANARY, 1]),
        {"eligible": "e"},
        rf"^table, column e: must be true or false; {ONE} Yes and no, or 1 and 0",
    ),
    "eligible missing": (
        table(e=[True, True, True, True, None, True]),
        {"eligible": "e"},
        rf"^table, column e: must be true or false; {ONE} Yes and no, or 1 and 0",
    ),
    "text feature": (
        table(x=["1", "2.5", "-3e4", "", TEXT, "6"]),
        {},
        rf"^table, column x: mixes numbers and text; {ONE} .* --na TEXT .*\. Or --categorical x",
    ),
    "a number among words": (
        table(x=["a", "b", "a", "b", str(CANARY), "b"]),
        {},
        r"^table, column x: mixes numbers and text; 5 of 6 rows fail, first at row 0",
    ),
    "free text": (
        table(x=[f"{TEXT} {word}" for word in "abcdef"]),
        {},
        r"^table, column x: is text that looks like an identifier or free text\. Leave it out: "
        r'--drop x \(drop=\["x"\]\); or keep it as a category: --categorical x ',
    ),
    "bytes feature": (
        table(x=[b"1", b"2", b"3", b"4", TEXT.encode(), b"6"]),
        {},
        rf"^table, column x: mixes numbers and text; {ONE} Write",
    ),
    "list feature": (
        table(x=[[CANARY]] * 6),
        {},
        r"^table, column x: must hold numbers, text or times\. Leave it out: --drop x ",
    ),
    "infinite feature": (
        bad("x", INF),
        {},
        rf"^table, column x: must be finite in float32; {ONE} Correct it, or leave",
    ),
    "feature beyond float32": (
        bad("x", 1e308),
        {},
        rf"^table, column x: must be finite in float32; {ONE} Correct it, or leave",
    ),
    "NaN feature": (
        bad("x", NAN),
        {"missing": "refuse"},
        rf"^table, column x: must not be missing; {ONE} Fill it",
    ),
    "static changes": (
        table(age=[3, 3, 3, 4, CANARY, 4]),
        {"static": ["age"]},
        rf"^table, column age: is static, so it must not change within a stay; {ONE} If it is",
    ),
    "static category changes": (
        table(age=["a", "a", "a", "b", TEXT, "b"]),
        {"static": ["age"], "categorical": ["age"]},
        rf"^table, column age: is static, so it must not change within a stay; {ONE} If it is",
    ),
    "group changes": (
        table(g=[1, 1, 1, 2, CANARY, 2]),
        {"group": "g"},
        rf"^table, column g: must not change within a stay; {ONE} Name the column",
    ),
    "group missing": (
        table(g=[1, 1, 1, 2, None, 2]),
        {"group": "g"},
        rf"^table, column g: must not be missing; {ONE}$",
    ),
    "zero rows": (table().slice(0, 0), {}, r"^table: must have at least one row\.$"),
    "time as text": (
        table(t=["a", "b", "c", "a", TEXT, "c"]),
        {},
        r"^table, column t: must order in time; 6 of 6 rows fail, first at row 0\. "
        r"Steps are numbers or times, or one word with a number",
    ),
    "time missing": (
        bad("t", None),
        {},
        rf"^table, column t: must not be missing; {ONE} Leave rows without",
    ),
    "time NaN": (
        bad("t", NAN),
        {},
        rf"^table, column t: must not be missing; {ONE} Leave rows without",
    ),
    "time infinite": (bad("t", INF), {}, rf"^table, column t: must be finite; {ONE}$"),
    "time of day": (
        table(t=pa.array([CANARY % 86400] * 6, pa.time32("s"))),
        {},
        r"^table, column t: must be a date, with or without a time of day\. Write the date too",
    ),
    "time beyond counting": (
        table(t=pa.array([2**60 + i for i in range(6)], pa.timestamp("s"))),
        {},
        r"^table, column t: must be a date, with or without a time of day\. Write the date too",
    ),
    "time beyond 64 bits": (
        table(t=pa.array([0, 1, 2, 0, 2**63 + 5, 2], pa.uint64())),
        {},
        rf"^table, column t: must be less than 2\*\*63; {ONE}$",
    ),
    "stay missing": (bad("s", None), {}, rf"^table, column s: must not be missing; {ONE}$"),
    "stay not whole": (
        bad("s", CANARY + 0.5),
        {},
        rf"^table, column s: must be a whole number within 2\*\*53, or text; {ONE}$",
    ),
    "stay infinite": (
        bad("s", INF),
        {},
        rf"^table, column s: must be a whole number within 2\*\*53, or text; {ONE}$",
    ),
    "stay too large to tell apart": (
        table(s=[2.0**53, 2.0**53, 1.0, 1.0, 1.0, 1.0], t=range(6)),
        {},
        r"^table, column s: must be a whole number within 2\*\*53, or text; 2 of 6 rows fail",
    ),
    "stay a date": (
        table(s=pd.to_datetime(["1913-05-07"] * 6), t=range(6)),
        {},
        r"^table, column s: must be a whole number or text\.$",
    ),
    "stay not UTF-8": (
        table(s=[b"\xff\xfe"] * 6, t=range(6)),
        {},
        r"^table, column s: must be UTF-8 text\.$",
    ),
    "stay with NUL": (
        table(s=["a", "a", "a", "a", "a\0", "a"], t=range(6)),
        {},
        rf"^table, column s: must be text of at most 255 characters, none of them NUL; {ONE}$",
    ),
    "stay without end": (
        table(s=["a", "a", "a", "a", TEXT * 99, "a"], t=range(6)),
        {},
        rf"^table, column s: must be text of at most 255 characters, none of them NUL; {ONE}$",
    ),
    "two columns of one name": (
        pa.Table.from_arrays([pa.array([CANARY])] * 2, ["s", "s"]),
        {},
        r"^table: column names must be distinct; ",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_bad_input_is_refused_in_one_line_by_place_rule_and_row_and_without_its_value(case):
    frame, options, message = REFUSALS[case]
    with pytest.raises(DataError, match=message) as caught:
        read(frame, **options)
    text = refusal_text(caught.value)
    assert len(text.splitlines()) == 1
    for canary in (str(CANARY), TEXT, "1913", "1e+308", "1e308"):
        assert canary not in text


def test_rows_are_counted_as_the_user_gave_them_whatever_their_order():
    order = [5, 3, 1, 0, 4, 2]  # row 4 of the plain table stands at place 4 again
    for case in ("action beyond", "loss infinite", "infinite feature", "propensity zero"):
        frame, options, message = REFUSALS[case]
        with pytest.raises(DataError, match=message):
            read(frame.take(order), **options)


SETTINGS = {
    "no stay": ({"stay": None}, r"^stay: must name a column where step does\.$"),
    "lag of one row": (
        {"stay": None, "step": None, "lag": 1},
        r"^lag: must be 0 where a stay has one row\. Name the column that orders",
    ),
    "loss alone": ({"action": None}, r"^loss: needs action\.$"),
    "one column twice": ({"loss": "a"}, r"^column a: must play one part only\.$"),
    "role and static": ({"static": ["a"]}, r"^column a: must play one part only\.$"),
    "static twice": ({"static": ["x", "x"]}, r"^column x: must play one part only\.$"),
    "lag": ({"lag": 2}, r"^lag: must be 0 or 1\.$"),
    "no actions": ({"n_actions": 0}, r"^n_actions: must be in 1\.\.65536\.$"),
    "fewer than none": ({"n_actions": -3}, r"^n_actions: must be in 1\.\.65536\.$"),
    "propensity without action": (
        {"action": None, "loss": None, "propensity": "x"},
        r"^propensity: needs action\.$",
    ),
    "eligible without action": (
        {"action": None, "loss": None, "eligible": "x"},
        r"^eligible: needs action\.$",
    ),
}


@pytest.mark.parametrize("case", SETTINGS)
def test_a_setting_out_of_bounds_is_refused_by_name(case):
    options, message = SETTINGS[case]
    with pytest.raises(SettingError, match=message):
        read(**options)


def test_like_refuses_a_feature_that_is_asked_to_play_a_second_part():
    with pytest.raises(SettingError, match=r"^column x: must play one part only\.$"):
        read_table(table(), like=read().schema, group="x")
