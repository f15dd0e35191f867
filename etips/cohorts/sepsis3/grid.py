"""One row per timestamp of a stay: charted values, labs and ventilation (sections 8 and 9)."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from etips.cohorts.sepsis3.events import Events
from etips.cohorts.sepsis3.rules import Rules
from etips.cohorts.sepsis3.variables import CHARTED, GRID, LIMITS, VENTILATION

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

INDEX: Final = {name: i for i, name in enumerate(GRID)}
_KEY: Final = ("stay", "t", "column")
_MECHVENT, _EXTUBATED = (INDEX[name] for name in VENTILATION)
_DEVICE: Final = INDEX["Interface"]
_BY_SUPPORT: Final = (8, 0, 2, 3, 4, 10, 9, 5, 6, 7, 1)  # codes of section 4.2, the least first


@dataclass(frozen=True)
class Grid:
    """Values by column and timestamp, sorted by stay and time.

    Attributes:
        stay: Id of the stay of each timestamp, shape (n,).
        t: Seconds since 1970, shape (n,).
        first: Position of the first timestamp of the same stay, shape (n,).
        values: NaN where nothing is charted, shape (columns, n) in the order of `GRID`.
    """

    stay: Ints
    t: Ints
    first: Ints
    values: Floats

    def __getitem__(self, name: str) -> Floats:
        """A view of one column; writing to it writes to the grid."""
        column: Floats = self.values[INDEX[name]]
        return column


def within_window(rows: pl.DataFrame, windows: pl.DataFrame) -> pl.DataFrame:
    """Rows of the stays in `windows` from `opens` to `closes`, both included (section 7)."""
    joined = rows.join(windows.select("stay", "opens", "closes"), on="stay")
    inside = (pl.col("opens") <= pl.col("t")) & (pl.col("t") <= pl.col("closes"))
    return joined.filter(inside).drop("opens", "closes")


def make_grid(events: Events, windows: pl.DataFrame, rules: Rules) -> Grid:
    """Pivot the measurements of some stays to one row per timestamp inside the window.

    Args:
        events: What happened to the stays.
        windows: stay, opens, closes (seconds).
        rules: What happens to several values for one cell.
    """
    measured = within_window(events.measurements, windows).select(
        "stay", "t", "priority", "value", column=pl.col("concept").to_physical().cast(pl.Int32)
    )
    grid = _pivot(one_value_per_cell(measured, rules))
    if events.ventilation.height:
        _mark_ventilated(grid, events.ventilation)
    return grid


def one_value_per_cell(measured: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """Of several values for one column at one timestamp keep the last, or their median.

    The order is that of priority, then of the value, missing last (section 8).

    Args:
        measured: stay, t, column, priority, value.
        rules: Whether the median of distinct values counts, of a flag the highest; and whether of
            several devices the one that supports most does: a median of codes is no device.
    """
    cells = (*_KEY, "value")
    if not rules.strongest_device:
        return _cells(measured, rules).select(cells)
    is_device = pl.col("column") == _DEVICE
    parts = _cells(measured.filter(~is_device), rules), _strongest(measured.filter(is_device))
    return pl.concat([part.select(cells) for part in parts]).sort(_KEY)


def _cells(measured: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    if rules.median_of_duplicates:
        flags = pl.col("column").is_in([_MECHVENT, _EXTUBATED])
        highest, middle = pl.col("value").max(), pl.col("value").median()
        chosen = pl.when(flags.first()).then(highest).otherwise(middle)
        return measured.unique().group_by(_KEY).agg(chosen).sort(_KEY)
    ordered = measured.sort(*_KEY, "priority", "value", nulls_last=True)
    followed = pl.all_horizontal(pl.col(name) == pl.col(name).shift(-1) for name in _KEY)
    return ordered.filter(~followed.fill_null(False))


def _strongest(devices: pl.DataFrame) -> pl.DataFrame:
    """Of the devices at one time the one of highest support; an unknown one is below all."""
    ranks = {float(code): rank for rank, code in enumerate(_BY_SUPPORT)}
    rank = pl.col("value").replace_strict(ranks, default=-1, return_dtype=pl.Int32)
    ordered = devices.with_columns(rank=rank).sort(*_KEY, "rank")
    return ordered.unique(_KEY, keep="last", maintain_order=True)


def _pivot(cells: pl.DataFrame) -> Grid:
    """Spread cells, sorted by stay and time, over the columns."""
    stay, t = (cells[name].to_numpy().astype(np.int64) for name in ("stay", "t"))
    new = np.ones(stay.size, bool)
    new[1:] = (np.diff(stay) != 0) | (np.diff(t) != 0)
    row = np.cumsum(new) - 1
    stay, t = stay[new], t[new]
    values = np.full((len(GRID), stay.size), np.nan)
    values[cells["column"].to_numpy(), row] = cells["value"].fill_null(np.nan).to_numpy()
    return Grid(stay=stay, t=t, first=first_of_run(stay), values=values)


def first_of_run(key: Ints) -> Ints:
    """Position at which the run of equal keys that holds each element begins."""
    position = np.arange(key.size)
    begins = np.ones(key.size, bool)
    begins[1:] = key[1:] != key[:-1]
    first: Ints = np.maximum.accumulate(np.where(begins, position, 0))
    return first


def _mark_ventilated(grid: Grid, periods: pl.DataFrame) -> None:
    """Timestamps within a period of invasive ventilation count as ventilated."""
    periods = periods.drop_nulls(["start", "end"]).sort("stay", "start", "end")
    stay, start, end = (
        periods[name].to_numpy().astype(np.int64) for name in ("stay", "start", "end")
    )
    begins = _searchsorted(grid, stay, start, side="left")
    ends = _searchsorted(grid, stay, end, side="right")
    depth = np.zeros(grid.t.size + 1, np.int64)
    np.add.at(depth, begins, 1)
    np.add.at(depth, np.maximum(begins, ends), -1)
    grid["mechvent"][np.cumsum(depth[:-1]) > 0] = 1


def _searchsorted(grid: Grid, stay: Ints, t: Ints, *, side: str) -> Ints:
    """Position of (stay, t) in the grid's order."""
    keys = np.concatenate([grid.stay, stay]), np.concatenate([grid.t, t])
    is_query = np.arange(keys[0].size) >= grid.stay.size
    tie = np.where(is_query, -1 if side == "left" else 1, 0)
    order = np.lexsort((tie, keys[1], keys[0]))
    n_before = np.cumsum(~is_query[order])
    position = np.empty(order.size, np.int64)
    position[order] = n_before
    return position[grid.stay.size :]


def drop_outliers(grid: Grid, rules: Rules, *, second_pass: bool) -> None:
    """Set implausible values to NaN, in place (section 9)."""
    _move_wild_celsius(grid)
    for name in CHARTED:
        low, high = LIMITS.get(name, (None, None))
        if name in ("SpO2", "Temp_C") and not second_pass:
            low = None
        if name == "FiO2_100":
            _drop_outside(grid[name], None, high)
            _percent(grid[name], strict=rules.strict_fio2)
        if name == "SpO2":
            _drop_outside(grid[name], None, high)
            grid[name][grid[name] > 100] = 100
        _drop_outside(grid[name], low, high)
    if rules.strict_fio2:
        _drop_outside(grid["FiO2_1"], 0.2, None)  # oddity 19


def _drop_outside(column: Floats, low: float | None, high: float | None) -> None:
    if high is not None:
        column[column > high] = np.nan
    if low is not None:
        column[column < low] = np.nan


def _percent(column: Floats, *, strict: bool) -> None:
    """Fractions charted as percent: below 1 in the scripts, 0.2 < x <= 1 if strict (oddity 19)."""
    fraction = (column > 0.2) & (column <= 1) if strict else column < 1
    column[fraction] *= 100


def _move_wild_celsius(grid: Grid) -> None:
    wild = (grid["Temp_C"] > 90) & np.isnan(grid["Temp_F"])
    grid["Temp_F"][wild] = grid["Temp_C"][wild]
