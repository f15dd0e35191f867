"""What any database does with rows it has read."""

import contextlib
import math
from datetime import datetime

import polars as pl
import pytest

from etips.cohorts.engines.address import open_source
from etips.cohorts.engines.layouts import INT, Layout, Layouts
from etips.cohorts.engines.raw_rows import (
    in_seconds,
    require_finite,
    require_owners,
    require_some,
)
from etips.errors import DataError

WARD = Layout("Ward", {"visit": {"bed": INT}, "bed": {"bed": INT}})


def test_times_become_whole_seconds_and_the_rest_stays():
    frame = pl.DataFrame({"t": [datetime(1970, 1, 2), None], "n": [1.5, 2.5], "name": ["a", "b"]})
    assert in_seconds(frame).to_dict(as_series=False) == {
        "t": [86_400, None], "n": [1.5, 2.5], "name": ["a", "b"],
    }  # fmt: skip


@pytest.mark.parametrize(("visits", "refused"), [((1, 2, 2), False), ((1, 3), True)])
def test_a_row_without_its_owner_is_refused(tmp_path, visits, refused):
    pl.DataFrame({"bed": visits}).write_parquet(tmp_path / "visit.parquet")
    pl.DataFrame({"bed": [1, 2]}).write_parquet(tmp_path / "bed.parquet")
    rule = r"^beds: must have a row for every bed of visits\."
    expected = pytest.raises(DataError, match=rule) if refused else contextlib.nullcontext()
    with contextlib.closing(open_source(tmp_path, Layouts((WARD,)))) as source, expected:
        rows, owners = (source.table(name, columns) for name, columns in WARD.tables.items())
        require_owners(source, rows, owners, key="bed", table="visits", owner="beds")


def test_a_table_without_a_row_is_refused():
    require_some("visits", 1)
    with pytest.raises(DataError, match=r"^visits: must hold rows that can be used"):
        require_some("visits", 0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_is_refused_and_a_missing_one_is_not(bad):
    fine = pl.DataFrame({"stay": [1, 2], "n": [0.5, None], "m": [None, 1.0]})
    require_finite("visits", fine)
    require_finite("visits", fine.select("stay"))
    rule = r"^visits: n and m must be finite; 1 rows fail\."
    with pytest.raises(DataError, match=rule):
        require_finite("visits", fine.with_columns(n=pl.Series([0.5, bad])))
