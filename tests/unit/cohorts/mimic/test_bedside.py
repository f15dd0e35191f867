"""Kept rows of some stays."""

import duckdb
import polars as pl
import pytest

from etips.cohorts.engines.store import Store
from etips.cohorts.mimic.bedside import read_block, read_cultures
from etips.errors import DataError

TIP, BLOOD = 225732, 225401


@pytest.fixture
def kept(tmp_path):
    store = Store(duckdb.connect(), work=tmp_path, keep=None, memory_limit="64MB")
    yield store
    store.close()


def put(store, name, **columns):
    frame = pl.DataFrame(columns)
    times = [c for c in columns if c in ("t", "start", "end")]
    frame = frame.with_columns(
        pl.from_epoch(c, time_unit="s").cast(pl.Datetime("us")) for c in times
    )
    store.put(name, frame.to_arrow(), append=False)


CHART = ("stay", "itemid", "t", "number", "device", "has_text", "ventilated", "extubated")
LABS = ("stay", "itemid", "t", "number", "specimen", "arterial")
GIVEN = ("stay", "amount", "rate", "rateuom", "statusdescription", "itemid", "start", "end")


def test_only_the_stays_asked_for_and_what_is_not_kept_is_empty(kept):
    put(kept, "urine", stay=[1, 2, 3], itemid=[7, 7, 7], t=[10, 20, 30], amount=[1.0, 2.0, 3.0])
    put(kept, "chart", **{name: [1] for name in CHART})
    put(kept, "labs", **{name: [2] for name in LABS})
    put(kept, "infusions_mv", **{name: [2] for name in GIVEN})
    tables = {name: name for name in ("chart", "labs", "infusions_mv", "urine")}
    block = read_block(kept, 2, 3, tables)
    assert block.urine.sort("t")["t"].to_list() == [20, 30]
    assert (block.chart.height, block.labs.height) == (0, 1)
    assert (block.infusions_cv.height, block.procedures.height) == (0, 0)


def test_a_number_that_is_none_is_refused_by_its_raw_table(kept):
    put(kept, "urine", stay=[1], itemid=[7], t=[10], amount=[float("inf")])
    with pytest.raises(DataError, match=r"^outputevents: "):
        read_block(kept, 1, 1, {"urine": "outputevents"})


def test_line_tips_may_need_their_value_and_procedures_may_take_cultures(kept):
    put(kept, "chart", stay=[1, 2], itemid=[TIP, TIP], t=[10, 20], number=[0.0, 1.0])
    put(kept, "procedures", stay=[3], itemid=[BLOOD], start=[30], end=[40])
    taken = read_cultures(kept, charted=[TIP], tips=[], procedures=[])
    assert sorted(taken.rows()) == [(1, 10), (2, 20)]
    taken = read_cultures(kept, charted=[TIP], tips=[TIP], procedures=[BLOOD])
    assert sorted(taken.rows()) == [(2, 20), (3, 30)]
