"""One row per timestamp of a stay: charted values, labs and ventilation (sections 8 and 9)."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from etips.cohorts.mimic3 import concepts
from etips.cohorts.mimic3.columns import CHARTED, GRID, VENTILATION
from etips.cohorts.mimic3.concepts import Items
from etips.cohorts.mimic3.config import CohortConfig
from etips.cohorts.mimic3.extract import Block

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

INDEX: Final = {name: i for i, name in enumerate(GRID)}
_KEY: Final = ("icustay_id", "t", "column")
_MECHVENT, _EXTUBATED = (INDEX[name] for name in VENTILATION)


@dataclass(frozen=True)
class Grid:
    """Values by column and timestamp, sorted by stay and time.

    Attributes:
        stay: icustay_id of each timestamp, shape (n,).
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
    joined = rows.join(windows.select("icustay_id", "opens", "closes"), on="icustay_id")
    inside = (pl.col("opens") <= pl.col("t")) & (pl.col("t") <= pl.col("closes"))
    return joined.filter(inside).drop("opens", "closes")


def make_grid(block: Block, windows: pl.DataFrame, items: Items, config: CohortConfig) -> Grid:
    """Pivot the raw rows of a block to one row per timestamp inside the window.

    Args:
        block: Raw rows.
        windows: icustay_id, opens, closes (seconds).
        items: Which column each item belongs to.
        config: What happens to several values for one cell.
    """
    long = long_values(
        within_window(block.chart, windows), within_window(block.labs, windows), items
    )
    if items.procedure_ventilation:
        extubations = block.procedures.filter(
            pl.col("itemid").is_in(concepts.EXTUBATION_PROCEDURES)
        ).rename({"start": "t"})
        long = pl.concat([long, _as_extubation(within_window(extubations, windows))])
    grid = _pivot(one_value_per_cell(long, median=config.median_of_duplicates))
    if items.procedure_ventilation:
        _mark_ventilated(grid, block.procedures)
    return grid


def long_values(chart: pl.DataFrame, labs: pl.DataFrame, items: Items) -> pl.DataFrame:
    """Stack vitals, labs and ventilation: icustay_id, t, column, source, itemid, number."""
    written = chart.filter("has_text")
    vitals = written.join(_columns(items.vitals), on="itemid").with_columns(
        number=pl.coalesce("device", "number")
    )
    chart_labs = chart.join(_columns(items.chart_labs), on="itemid").drop_nulls("number")
    results = labs.join(_columns(items.labs), on="itemid")
    ventilation = written.filter(pl.col("itemid").is_in(items.ventilation))
    parts = [
        vitals.with_columns(source=pl.lit(0, pl.Int8)),
        chart_labs.with_columns(source=pl.lit(0, pl.Int8)),
        results.with_columns(source=pl.lit(1, pl.Int8)),
        _as_flag(ventilation, _MECHVENT, pl.col("ventilated")),
        _as_flag(ventilation, _EXTUBATED, pl.col("extubated")),
    ]
    return pl.concat([part.select(*_KEY, "source", "itemid", "number") for part in parts])


def _columns(features: dict[int, str]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "itemid": pl.Series(list(features), dtype=pl.Int32),
            "column": pl.Series([INDEX[name] for name in features.values()], dtype=pl.Int32),
        }
    )


def _as_flag(rows: pl.DataFrame, column: int, flag: pl.Expr) -> pl.DataFrame:
    """Ventilation by timestamp: any row that says so. One item number, so that 1 sorts last."""
    return rows.with_columns(
        column=pl.lit(column, pl.Int32),
        source=pl.lit(0, pl.Int8),
        itemid=pl.lit(0, pl.Int32),
        number=flag.cast(pl.Float64),
    )


def _as_extubation(rows: pl.DataFrame) -> pl.DataFrame:
    flagged = _as_flag(rows, _EXTUBATED, pl.lit(True))
    return flagged.select(*_KEY, "source", "itemid", "number")


def one_value_per_cell(long: pl.DataFrame, *, median: bool) -> pl.DataFrame:
    """Of several values for one column at one timestamp keep the last, or their median.

    The order is chartevents before labevents, then item, then number, missing last (section 8).
    """
    if median:
        flags = pl.col("column").is_in([_MECHVENT, _EXTUBATED])
        highest, middle = pl.col("number").max(), pl.col("number").median()
        chosen = pl.when(flags.first()).then(highest).otherwise(middle)
        return long.unique().group_by(_KEY).agg(chosen).sort(_KEY)
    ordered = long.sort(*_KEY, "source", "itemid", "number", nulls_last=True)
    followed = pl.all_horizontal(pl.col(name) == pl.col(name).shift(-1) for name in _KEY)
    return ordered.filter(~followed.fill_null(False))


def _pivot(cells: pl.DataFrame) -> Grid:
    """Spread cells, sorted by stay and time, over the columns."""
    stay, t = (cells[name].to_numpy().astype(np.int64) for name in ("icustay_id", "t"))
    new = np.ones(stay.size, bool)
    new[1:] = (np.diff(stay) != 0) | (np.diff(t) != 0)
    row = np.cumsum(new) - 1
    stay, t = stay[new], t[new]
    values = np.full((len(GRID), stay.size), np.nan)
    values[cells["column"].to_numpy(), row] = cells["number"].fill_null(np.nan).to_numpy()
    return Grid(stay=stay, t=t, first=first_of_run(stay), values=values)


def first_of_run(key: Ints) -> Ints:
    """Position at which the run of equal keys that holds each element begins."""
    position = np.arange(key.size)
    begins = np.ones(key.size, bool)
    begins[1:] = key[1:] != key[:-1]
    first: Ints = np.maximum.accumulate(np.where(begins, position, 0))
    return first


def _mark_ventilated(grid: Grid, procedures: pl.DataFrame) -> None:
    """Timestamps within a period of invasive ventilation count as ventilated."""
    periods = procedures.filter(pl.col("itemid") == concepts.INVASIVE_VENTILATION_ITEM)
    periods = periods.drop_nulls(["start", "end"]).sort("icustay_id", "start", "end")
    stay, start, end = (
        periods[name].to_numpy().astype(np.int64) for name in ("icustay_id", "start", "end")
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


def drop_outliers(grid: Grid, config: CohortConfig, *, second_pass: bool) -> None:
    """Set implausible values to NaN, in place (section 9)."""
    _move_wild_celsius(grid)
    for name in CHARTED:
        low, high = concepts.limits().get(name, (None, None))
        if name in ("SpO2", "Temp_C") and not second_pass:
            low = None
        if name == "FiO2_100":
            _drop_outside(grid[name], None, high)
            _percent(grid[name], strict=config.strict_fio2)
        if name == "SpO2":
            _drop_outside(grid[name], None, high)
            grid[name][grid[name] > 100] = 100
        _drop_outside(grid[name], low, high)
    if config.strict_fio2:
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
