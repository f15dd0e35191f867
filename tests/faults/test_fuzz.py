"""D1: whatever a table holds, it is read or refused in one line; no traceback, no hang."""

import time
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cohorts import Cohort
from strategies import CANARY, TEXT, fingerprint, long_table, refusal_text, roles_of

from etips.data import Scaler, Trajectories, read_table, split
from etips.errors import EtipsError

CORPUS = Path(__file__).parent / "corpus"
READ = (  # of the corpus
    "features-named-like-roles",
    "names-not-utf8",
    "action-of-a-thousand-million",  # a label
    "stays-beyond-float64",  # text, so that none are merged
)
CANARIES = (str(CANARY), TEXT)
ROLES = {"stay": "stay", "step": "step", "action": "action", "loss": "loss"}


def attempt(table, header="", **options):
    """Read, or refuse in one printable line without a canary, within five seconds of work.

    Column names are shown; a canary in the `header` is one.
    """
    secret = [canary for canary in CANARIES if canary not in header]
    started = time.process_time()
    try:
        found = read_table(table, **options)
        use(found)
    except EtipsError as error:
        found = error
    assert time.process_time() - started < 5
    if isinstance(found, EtipsError):
        text = refusal_text(found)
        assert len(text.splitlines()) == 1
        assert str(found).isprintable()
        assert not any(canary in text for canary in secret)
    return found


def use(data: Trajectories):
    """What is accepted can be used: it holds nothing that breaks further on."""
    assert not np.isinf(data.sequence).any()
    assert data.n_decisions >= 1
    assert data.histories(slice(0, 10)).sequence.shape[2] == data.sequence.shape[1]
    Scaler(log=[]).fit_transform(data)
    assert not any(canary in repr(data) for canary in CANARIES)
    if data.n_stays > 1 and (data.group is None or len(np.unique(data.group)) > 1):
        split(data, test=0.5)


# ---- tables of every type ----------------------------------------------------------------------

odd_text = st.one_of(
    st.text(max_size=6),
    st.sampled_from(
        ["", "NaN", "inf", "1e308", "0", "1", "-1", "1,5", "\0", "\ufeff", "\u202e", TEXT]
    ),
    st.sampled_from(
        ["2101-01-01", "01/02/2101", "2101-13-45", "24:00", '"', "a\nb", "NULL", "true"]
    ),
)
odd_floats = st.one_of(
    st.floats(width=64),
    st.sampled_from([0.0, 1.0, 2.0, 0.5, -0.0, 1e308, -1e308, 1e-320, 2.0**53, float(CANARY)]),
)
odd_ints = st.one_of(
    st.integers(-1, 4),
    st.sampled_from([0, 1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), CANARY]),
)
CELLS = {
    pa.int64(): odd_ints,
    pa.int8(): st.integers(-1, 4),
    pa.uint64(): st.sampled_from([0, 1, 2, 2**63, 2**64 - 1]),
    pa.float64(): odd_floats,
    pa.float32(): st.floats(width=32),
    pa.float16(): st.sampled_from([0.0, 1.0, 0.5, float("nan"), float("inf")]).map(np.float16),
    pa.bool_(): st.booleans(),
    pa.string(): odd_text,
    pa.large_string(): odd_text,
    pa.string_view(): odd_text,
    pa.binary(): st.binary(max_size=4),
    pa.binary(3): st.binary(min_size=3, max_size=3),
    pa.date32(): st.dates(),
    pa.timestamp("s"): st.datetimes(),
    pa.timestamp("us", "UTC"): st.datetimes(),
    pa.timestamp("ns"): st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)),
    pa.time64("us"): st.times(),
    pa.duration("us"): st.timedeltas(timedelta(-9999), timedelta(9999)),
    pa.decimal128(20, 3): st.decimals(-9999, 9999, places=3).map(Decimal),
    pa.list_(pa.int64()): st.lists(odd_ints, max_size=2),
    pa.struct([("stay", pa.int64())]): st.fixed_dictionaries({"stay": st.integers(0, 9)}),
    pa.dictionary(pa.int8(), pa.string()): odd_text,
    pa.dictionary(pa.int32(), pa.int64()): st.integers(0, 3),
    pa.null(): st.none(),
}
LIKELY = {
    "stay": st.integers(0, 2),
    "step": st.integers(0, 9),
    "action": st.integers(0, 2),
    "loss": st.floats(0, 1),
}


def rarely(draw, one_in):
    return draw(st.integers(1, one_in)) == one_in


@st.composite
def columns(draw, name, n_rows):
    """A column that is mostly what its name promises, and now and then anything at all."""
    kind, cells = pa.float64(), st.floats(-9, 9)
    if rarely(draw, 20 if name in LIKELY else 3):
        kind = draw(st.sampled_from(list(CELLS)))
        cells = CELLS[kind]
    elif name in LIKELY:
        kind, cells = pa.float64() if name == "loss" else pa.int64(), LIKELY[name]
        if name == "step" and not rarely(draw, 8):
            return pa.array(range(n_rows) if draw(st.booleans()) else range(n_rows, 0, -1), kind)
    if rarely(draw, 6):
        cells = st.one_of(st.none(), cells)
    values = draw(st.lists(cells, min_size=n_rows, max_size=n_rows))
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode()
    return pa.array(values, kind)


feature_names = st.one_of(
    st.sampled_from(
        ["x", "y", "x_missing", "ward=icu", "ward", "group", "propensity", "", " ", "a.b"]
    ),
    st.text(max_size=4),
)


@st.composite
def tables(draw):
    """A long table with some fault or none, as Arrow, pandas, polars, CSV or Parquet."""
    n_rows = draw(st.sampled_from([1, 2, 3, 5, 8, 13])) * (not rarely(draw, 20))
    unique = not rarely(draw, 20)
    names = [*LIKELY, *draw(st.lists(feature_names, max_size=4, unique=unique))]
    if rarely(draw, 20):
        names.remove(draw(st.sampled_from(list(LIKELY))))
    arrays = [draw(columns(name, n_rows)) for name in names]
    order = draw(st.permutations(range(len(names))))
    table = pa.Table.from_arrays([arrays[i] for i in order], [names[i] for i in order])
    return table, draw(st.sampled_from(["arrow", *WAYS]))


WAYS = {
    "pandas": lambda table, _: table.to_pandas(),
    "polars": lambda table, _: pl.from_arrow(table),
    "csv": lambda table, folder: written(pa_csv.write_csv, table, folder / "t.csv"),
    "parquet": lambda table, folder: written(pq.write_table, table, folder / "t.parquet"),
    "chunks": lambda table, _: pa.Table.from_batches(table.to_batches(2), table.schema),
}


def written(write, table, path):
    write(table, path)
    return path


@st.composite
def options(draw, names):
    features = [name for name in names if rarely(draw, 20) or name not in LIKELY]
    some = st.lists(st.sampled_from(features), max_size=2, unique=True) if features else st.just([])
    one = st.sampled_from(features) if features else st.none()
    return {
        **ROLES,
        "static": draw(some) if rarely(draw, 8) else [],
        "categorical": draw(some) if rarely(draw, 3) else [],
        "propensity": draw(one) if rarely(draw, 8) else None,
        "group": draw(one) if rarely(draw, 8) else None,
        "eligible": draw(one) if rarely(draw, 8) else None,
        "missing": draw(st.sampled_from(["refuse", "carry"])),
        "lag": draw(st.sampled_from([0, 1])),
        "n_actions": draw(st.sampled_from([None, None, 3])),
    }


def fuzz_tables(folder, pair, given_options):
    table, way = pair
    frame = table
    if way != "arrow":
        try:
            frame = WAYS[way](table, folder)
        except Exception:  # noqa: BLE001  # the other library cannot hold such a table
            frame = table
    first = attempt(frame, **given_options)
    if isinstance(first, Trajectories):
        again = attempt(frame, like=first.schema)
        assert isinstance(again, Trajectories)
        assert np.array_equal(again.sequence, first.sequence, equal_nan=True)


any_table = tables().flatmap(
    lambda pair: st.tuples(st.just(pair), options(list(dict.fromkeys(pair[0].column_names))))
)


@pytest.mark.filterwarnings("ignore::FutureWarning:pandas")
@settings(max_examples=250)
@given(case=any_table)
def test_d1_a_table_of_any_type_is_read_or_refused_in_one_line(tmp_path_factory, case):
    """D1: 250 of the 500 of the P-gate: types, dates, duplicates, NaN, 1e308, unicode, NUL."""
    fuzz_tables(tmp_path_factory.getbasetemp(), *case)


@pytest.mark.slow
@settings(max_examples=5000)
@given(case=any_table)
def test_d1_five_thousand_tables_of_any_type(tmp_path_factory, case):
    """D1, all: 5000 of 10,000."""
    fuzz_tables(tmp_path_factory.getbasetemp(), *case)


# ---- bytes that were a valid file --------------------------------------------------------------

COHORT = Cohort(seed=11, n_stays=4, longest=4)
INSERTS = [
    b",", b";", b"\t", b"\n", b"\r\n", b"\r", b'"', b"'", b"\0", b"\xff", b"\xef\xbb\xbf",
    b"\xc3\x28", b"NaN", b"inf", b"1e308", b"-", b".", b"=", b"#", b"NULL", b"2101-01-01",
    "ä€😀".encode(), TEXT.encode(), str(CANARY).encode(), b"\n" * 9, b"," * 9, b"9" * 40, b'"' * 7,
]  # fmt: skip


@st.composite
def edits(draw):
    """Up to six edits: turn, drop, insert, repeat or cut bytes, at places given as shares."""
    place = st.floats(0, 1, exclude_max=True)
    edit = st.one_of(
        st.tuples(st.just("turn"), place, st.integers(1, 255)),
        st.tuples(st.just("drop"), place, st.integers(1, 30)),
        st.tuples(st.just("insert"), place, st.sampled_from(INSERTS)),
        st.tuples(st.just("repeat"), place, st.integers(1, 40)),
        st.tuples(st.just("cut"), place, st.none()),
        st.tuples(
            st.just("replace"), st.sampled_from([b",", b"\n", b"."]), st.sampled_from(INSERTS)
        ),
    )
    return draw(st.lists(edit, min_size=1, max_size=6))


def mutate(content, changes):
    for kind, place, what in changes:
        if kind == "replace":
            content = content.replace(place, what)
            continue
        at = int(place * len(content))
        if kind == "turn" and content:
            content = content[:at] + bytes([content[at] ^ what]) + content[at + 1 :]
        elif kind == "drop":
            content = content[:at] + content[at + what :]
        elif kind == "insert":
            content = content[:at] + what + content[at:]
        elif kind == "repeat":
            content = content[:at] + content[at : at + what] * 3 + content[at + what :]
        elif kind == "cut":
            content = content[:at]
    return content


def valid(kind):
    sink = pa.BufferOutputStream()
    table = long_table(COHORT.make())
    if kind == "parquet":
        pq.write_table(table, sink, row_group_size=5)
    else:
        pa_csv.write_csv(table, sink)
    return sink.getvalue().to_pybytes()


def fuzz_bytes(folder, kind, changes, missing):
    path = folder / f"fuzz.{kind}"
    changed = mutate(VALID[kind], changes)
    path.write_bytes(changed)
    header = changed.splitlines()[:1] if kind == "csv" else []
    named = b"".join(header).decode("latin-1")
    attempt(path, header=named, **roles_of(COHORT.make()), missing=missing)


VALID = {kind: valid(kind) for kind in ("csv", "parquet")}
missings = st.sampled_from(["refuse", "carry"])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@settings(max_examples=125)
@given(changes=edits(), missing=missings)
def test_d1_a_file_with_changed_bytes_is_read_or_refused_in_one_line(
    tmp_path_factory, kind, changes, missing
):
    """D1: twice 125 of the 500; separators, quotes, BOM, CRLF, NUL, ragged rows, cut files."""
    fuzz_bytes(tmp_path_factory.getbasetemp(), kind, changes, missing)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@settings(max_examples=2500)
@given(changes=edits(), missing=missings)
def test_d1_five_thousand_files_with_changed_bytes(tmp_path_factory, kind, changes, missing):
    """D1, all: twice 2500 of 10,000."""
    fuzz_bytes(tmp_path_factory.getbasetemp(), kind, changes, missing)


# ---- what the fuzzing found, kept ---------------------------------------------------------------


@pytest.mark.parametrize("role", ["stay", "step", "action", "loss", "group", "x"])
def test_numbers_of_sixteen_bits_are_read_in_every_role(role):
    """2**53, the largest whole number a float holds for sure, is itself no float16."""
    cells = {"stay": [0, 0, 1], "step": [0, 1, 0], "action": [0, 1, 1], "loss": [0, 1, 1]}
    cells |= {"group": [0, 0, 1], "x": [1, 2, 3]}
    table = pa.table(cells)
    half = pa.array(np.array(cells[role], np.float16))
    narrow = table.set_column(table.column_names.index(role), role, half)
    found, wanted = (read_table(each, **ROLES, group="group") for each in (narrow, table))
    assert fingerprint(found) == fingerprint(wanted)


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.[cp]*")), ids=lambda p: p.name)
@pytest.mark.parametrize("missing", ["refuse", "carry"])
def test_d1_what_once_went_wrong_is_read_or_refused_in_one_line(path, missing):
    """D1: each file of the corpus broke the reader once (see make_corpus.py); few can be read."""
    found = attempt(path, **ROLES, missing=missing)
    if path.stem in READ:
        found = attempt(path, like=found.schema)
    assert isinstance(found, Trajectories) == (path.stem in READ)


@pytest.mark.parametrize(
    "values",
    [
        pd.Series([2**70, 1], dtype=object),
        pd.Series([1, "a"], dtype=object),
        pd.Series([{1}, {2}], dtype=object),
        pd.Series([object(), object()], dtype=object),
        pd.Series([date(2101, 1, 1), 3], dtype=object),
        pd.Series(pd.period_range("2101", periods=2, freq="D")),
        pd.Series(pd.interval_range(0, 2)),
        pd.Series([1j, 2j]),
        pd.Series(pd.arrays.SparseArray([0, 1])),
    ],
    ids=("huge", "mixed", "sets", "objects", "dates", "periods", "intervals", "complex", "sparse"),
)
def test_d1_a_pandas_column_of_objects_is_refused_or_read(values):
    """D1: what only pandas can hold."""
    for name in ("stay", "step", "action", "loss", "x"):
        frame = pd.DataFrame({"stay": [1, 1], "step": [0, 1], "action": [0, 1], "loss": [0.0, 1.0]})
        attempt(frame.assign(**{name: values}), **ROLES)
