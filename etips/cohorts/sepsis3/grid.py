"""One row per timestamp of a stay, then one per step, which averages them.

The rules: docs/cohort/rules.md sections 7 to 12.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from etips.cohorts.sepsis3.events import Events
from etips.cohorts.sepsis3.rules import Rules
from etips.cohorts.sepsis3.variables import (
    CHARTED,
    GCS_PARTS,
    GRID,
    HOLD_HOURS,
    HOUR,
    LIMITS,
    VENTILATION,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

INDEX: Final = {name: i for i, name in enumerate(GRID)}
_KEY: Final = ("stay", "t", "column")
_BY_SUPPORT: Final = (8, 0, 2, 3, 4, 10, 9, 5, 6, 7, 1)  # codes of section 4.2, the least first
_RASS_TO_GCS: Final = {-1: 14, -2: 12, -3: 11, -4: 6, -5: 3}
_CANNULA: Final = (0, 2)
_MASK: Final = (1, 3, 4, 5, 6, 9, 10)
_NON_REBREATHER: Final = 7
# Flow in L/min up to and including the limit -> percent of oxygen; above the last, nothing.
_CANNULA_TABLE: Final = (
    (1, 24), (2, 28), (3, 32), (4, 36), (5, 40), (6, 44), (8, 50), (10, 55), (12, 62), (15, 70),
)  # fmt: skip
_MASK_TABLE: Final = ((4, 36), (6, 40), (8, 58), (10, 66), (12, 69), (15, 75))
_ROOM_AIR: Final = 21


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


def first_of_run(key: Ints) -> Ints:
    """Position at which the run of equal keys that holds each element begins."""
    begins = np.ones(key.size, bool)
    begins[1:] = key[1:] != key[:-1]
    first: Ints = np.maximum.accumulate(np.where(begins, np.arange(key.size), 0))
    return first


def make_grid(events: Events, windows: pl.DataFrame, rules: Rules) -> Grid:
    """Pivot the measurements of some stays to one row per timestamp inside the window.

    `windows` has stay, opens and closes (seconds, both included).
    """
    measured = events.measurements.join(windows.select("stay", "opens", "closes"), on="stay")
    measured = measured.filter(pl.col("t").is_between("opens", "closes")).select(
        "stay", "t", "priority", "value", column=pl.col("concept").to_physical().cast(pl.Int32)
    )
    cells = _one_value_per_cell(measured, rules)
    stay, t = (cells[name].to_numpy().astype(np.int64) for name in ("stay", "t"))
    new = np.ones(stay.size, bool)
    new[1:] = (np.diff(stay) != 0) | (np.diff(t) != 0)
    values = np.full((len(GRID), int(new.sum())), np.nan)
    row = np.cumsum(new) - 1
    values[cells["column"].to_numpy(), row] = cells["value"].fill_null(np.nan).to_numpy()
    grid = Grid(stay=stay[new], t=t[new], first=first_of_run(stay[new]), values=values)
    times = pl.DataFrame({"stay": grid.stay, "t": grid.t}).with_row_index("row")
    ventilated = times.join(events.ventilation.drop_nulls(), on="stay")
    ventilated = ventilated.filter(pl.col("t").is_between("start", "end"))
    grid["mechvent"][ventilated["row"].to_numpy()] = 1
    return grid


def _one_value_per_cell(measured: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """Of several values for one column at one time keep the last, or their median (section 8).

    The order is that of priority, then of the value, missing last. Corrected, the median of
    distinct values counts, of a flag the highest, and of several devices the one that supports
    most: a median of codes is no device.
    """
    is_device = pl.col("column") == INDEX["Interface"]
    rest = measured.filter(~is_device) if rules.strongest_device else measured
    if rules.median_of_duplicates:
        is_flag = pl.col("column").is_in([INDEX[name] for name in VENTILATION])
        highest, middle = pl.col("value").max(), pl.col("value").median()
        chosen = pl.when(is_flag.first()).then(highest).otherwise(middle)
        cells = rest.unique().group_by(_KEY).agg(chosen).sort(_KEY)
    else:
        ordered = rest.sort(*_KEY, "priority", "value", nulls_last=True)
        followed = pl.all_horizontal(pl.col(name) == pl.col(name).shift(-1) for name in _KEY)
        cells = ordered.filter(~followed.fill_null(False))
    if not rules.strongest_device:
        return cells.select(*_KEY, "value")
    ranks = {float(code): rank for rank, code in enumerate(_BY_SUPPORT)}
    rank = pl.col("value").replace_strict(ranks, default=-1, return_dtype=pl.Int32)
    devices = measured.filter(is_device).with_columns(rank=rank).sort(*_KEY, "rank")
    devices = devices.unique(_KEY, keep="last", maintain_order=True)
    return pl.concat([part.select(*_KEY, "value") for part in (cells, devices)]).sort(_KEY)


def drop_outliers(grid: Grid, rules: Rules, *, second_pass: bool) -> None:
    """Set implausible values to NaN, in place (section 9)."""
    celsius, fahrenheit = grid["Temp_C"], grid["Temp_F"]
    wild = (celsius > 90) & np.isnan(fahrenheit)
    fahrenheit[wild] = celsius[wild]
    for name in CHARTED:
        column = grid[name]
        low, high = LIMITS.get(name, (None, None))
        if high is not None:
            column[column > high] = np.nan
        if name == "FiO2_100":  # fractions charted as percent (oddity 19)
            is_fraction = (column > 0.2) & (column <= 1) if rules.strict_fio2 else column < 1
            column[is_fraction] *= 100
        if name == "SpO2":
            column[column > 100] = 100
        if low is not None and (second_pass or name not in ("SpO2", "Temp_C")):
            column[column < low] = np.nan
    if rules.strict_fio2:
        grid["FiO2_1"][grid["FiO2_1"] < 0.2] = np.nan  # oddity 19


def hold(grid: Grid, name: str, rules: Rules) -> Floats:
    """A column, its missing values filled with the last of the stay while that is young enough."""
    hours = rules.potassium_hold_hours if name == "Potassium" else HOLD_HOURS[name]  # oddity 21
    column = grid[name]
    last = np.maximum.accumulate(np.where(np.isnan(column), -1, np.arange(column.size)))
    usable = (last >= grid.first) & (grid.t - grid.t[last] <= hours * HOUR)
    return np.where(usable, column[last], np.nan)


def hold_all(grid: Grid, rules: Rules) -> None:
    """Hold every column, in place (section 11)."""
    for name in CHARTED:
        grid[name][:] = hold(grid, name, rules)


def cross_estimate(grid: Grid, rules: Rules) -> None:
    """Fill columns from related ones, in the order of section 10, in place."""
    eye, verbal, motor = (grid[name] for name in GCS_PARTS)  # oddity 16
    _fill(grid["GCS"], eye + verbal + motor)
    _fill(grid["GCS"], gcs_from_rass(grid["RASS"]))
    _fill_fio2(grid)
    # 10.3: by the held device and flow, only where the held FiO2 is missing
    held, flow, device = (hold(grid, name, rules) for name in ("FiO2_100", "O2flow", "Interface"))
    percent = fio2_from_flow(device, flow, unknown_is_mask=rules.unknown_device_is_mask)
    _fill(grid["FiO2_100"], np.where(np.isnan(held), percent, np.nan))
    _fill_fio2(grid)
    # 10.4: whichever one of three pressures is missing
    systolic, mean, diastolic = (grid[name] for name in ("SysBP", "MeanBP", "DiaBP"))
    _fill(diastolic, (3 * mean - systolic) / 2)
    _fill(mean, (systolic + 2 * diastolic) / 3)
    _fill(systolic, 3 * mean - 2 * diastolic)
    # 10.5: put each temperature into the column of its unit, then fill one from the other
    celsius, fahrenheit = grid["Temp_C"], grid["Temp_F"]
    _move((fahrenheit > 25) & (fahrenheit < 45), fahrenheit, celsius)
    _move(celsius > 70, celsius, fahrenheit)
    if rules.limit_fahrenheit:
        fahrenheit[(fahrenheit < 68) | (fahrenheit > 113)] = np.nan  # oddity 28
    _fill(fahrenheit, 1.8 * celsius + 32)
    _fill(celsius, (fahrenheit - 32) / 1.8)
    _fill(grid["Ht"], 2.862 * grid["Hb"] + 1.216)
    _fill(grid["Hb"], (grid["Ht"] - 1.216) / 2.862)
    _fill(grid["Direct_bili"], 0.6934 * grid["Total_bili"] - 0.1752)
    _fill(grid["Total_bili"], (grid["Direct_bili"] + 0.1752) / 0.6934)


def _fill(column: Floats, estimate: Floats) -> None:
    missing = np.isnan(column)
    column[missing] = estimate[missing]


def _fill_fio2(grid: Grid) -> None:
    """10.2: the fraction and the percentage fill each other."""
    _fill(grid["FiO2_1"], grid["FiO2_100"] / 100)
    _fill(grid["FiO2_100"], grid["FiO2_1"] * 100)


def _move(rows: Bools, source: Floats, target: Floats) -> None:
    target[rows] = source[rows]
    source[rows] = np.nan


def gcs_from_rass(rass: Floats) -> Floats:
    """GCS that stands for a sedation score: 10.1; NaN for anything between the whole numbers."""
    gcs = np.where(rass >= 0, 15.0, np.nan)
    for score, points in _RASS_TO_GCS.items():
        gcs[rass == score] = points
    return gcs


def fio2_from_flow(device: Floats, flow: Floats, *, unknown_is_mask: bool) -> Floats:
    """Percent of oxygen by code of the device and flow (L/min), NaN if unknown: the table of 10.3.

    With `unknown_is_mask`, an unknown device is read as a mask (oddity 18, corrected).
    """
    mask = np.isin(device, _MASK)
    if unknown_is_mask:
        mask |= np.isnan(device) | (device == 8)
    cannula, non_rebreather = np.isin(device, _CANNULA), device == _NON_REBREATHER
    percent = np.full(flow.shape, np.nan)
    percent[cannula & np.isnan(flow)] = _ROOM_AIR
    percent[non_rebreather & (flow >= 15)] = 100
    percent[non_rebreather & (flow >= 10) & (flow < 15)] = 90
    percent[non_rebreather & (flow < 10)] = 80
    tables = ((cannula, _CANNULA_TABLE), (mask, _MASK_TABLE), (non_rebreather, ((6, 60), (8, 70))))
    for rows, table in tables:
        for limit, value in reversed(table):  # the smallest matching limit is written last
            percent[rows & (flow <= limit)] = value
    return percent


@dataclass(frozen=True)
class Steps:
    """The steps that exist, sorted by stay and number.

    Attributes:
        stays: Id of each stay with at least one step, sorted, shape (s,).
        beg: Left edge of step 0 of each stay in seconds, shape (s,).
        last: Last timestamp of each stay in the window in seconds, shape (s,).
        owner: Which stay each step belongs to, as a position in `stays`, shape (k,).
        number: 0 .. `rules.most_steps` - 1, gaps included, shape (k,).
        means: Mean of each charted column over the rows of the step, shape (65, k).
        rules: How many steps a stay may have, how long they are, whether they exclude their right
            edge.
    """

    stays: Ints
    beg: Ints
    last: Ints
    owner: Ints
    number: Ints
    means: Floats
    rules: Rules

    def find(self, owner: Ints, number: Ints) -> tuple[Ints, Bools]:
        """Position of given steps, and whether they exist."""
        most = self.rules.most_steps
        return _find(self.owner * most + self.number, owner * most + number)


def _find(existing: Ints, key: Ints) -> tuple[Ints, Bools]:
    """Position of keys among the existing ones, which rise, and whether they are there."""
    if not existing.size:
        return np.zeros(key.shape, np.int64), np.zeros(key.shape, bool)
    position = np.searchsorted(existing, key).clip(max=existing.size - 1)
    return position, existing[position] == key


def steps_of(offset: Ints, rules: Rules) -> tuple[Ints, Ints]:
    """Which steps each moment belongs to: (index of the moment, number of the step).

    With closed steps a moment on an inner edge belongs to two (oddity 5).
    """
    number, rest = np.divmod(offset, rules.step_seconds)
    inside = np.flatnonzero((number >= 0) & (number < rules.most_steps))
    if rules.half_open_steps:
        return inside, number[inside]
    edge = np.flatnonzero((rest == 0) & (number >= 1) & (number <= rules.most_steps))
    return np.concatenate([inside, edge]), np.concatenate([number[inside], number[edge] - 1])


def make_steps(
    grid: Grid, rules: Rules, *, anchor: Ints | None = None, opening: Bools | None = None
) -> Steps:
    """Average the rows of a grid over the steps of its stays.

    Args:
        grid: Held values.
        rules: Number, length and kind of steps.
        anchor: Left edge of step 0 for each row's stay, shape (n,); its first row if left out.
        opening: Which rows may open a step, shape (n,); all if left out.
    """
    beg = grid.t[grid.first] if anchor is None else anchor
    row, number = steps_of(grid.t - beg, rules)
    stays, owner_of_row = np.unique(grid.stay, return_inverse=True)
    key = owner_of_row[row] * rules.most_steps + number
    existing = np.unique(key if opening is None else key[opening[row]])
    step, exists = _find(existing, key)
    row, step = row[exists], step[exists]
    means = np.full((len(CHARTED), existing.size), np.nan)
    for name in CHARTED:
        value = grid[name][row]
        known = ~np.isnan(value)
        # bincount adds one row after the other; another order could move a mean across a limit of
        # the scores by its last bit
        total = np.bincount(step[known], value[known], minlength=existing.size)
        count = np.bincount(step[known], minlength=existing.size)
        np.divide(total, count, out=means[INDEX[name]], where=count > 0)
    used, owner = np.unique(existing // rules.most_steps, return_inverse=True)
    last_row = np.append(np.flatnonzero(np.diff(grid.stay)), grid.stay.size - 1)[: stays.size][used]
    return Steps(
        stays=stays[used],
        beg=beg[last_row],
        last=grid.t[last_row],
        owner=owner.astype(np.int64),
        number=existing % rules.most_steps,
        means=means,
        rules=rules,
    )
