"""Values worked out from one another, and sample-and-hold.

The rules: docs/cohort/rules.md sections 10 and 11.
"""

from typing import Final

import numpy as np

from etips.cohorts.sepsis3.grid import Bools, Floats, Grid, Ints
from etips.cohorts.sepsis3.rules import Rules
from etips.cohorts.sepsis3.variables import CHARTED, GCS_PARTS, HOLD_HOURS, HOUR

_RASS_TO_GCS: Final = {-1: 14, -2: 12, -3: 11, -4: 6, -5: 3}
_CANNULA: Final = (0, 2)
_MASK: Final = (1, 3, 4, 5, 6, 9, 10)
_NON_REBREATHER: Final = 7
# Flow in L/min up to and including the limit -> percent of oxygen; above the last, nothing.
_CANNULA_TABLE: Final = (
    (1, 24), (2, 28), (3, 32), (4, 36), (5, 40), (6, 44), (8, 50), (10, 55), (12, 62), (15, 70),
)  # fmt: skip
_MASK_TABLE: Final = ((4, 36), (6, 40), (8, 58), (10, 66), (12, 69), (15, 75))
ROOM_AIR: Final = 21


def hold(column: Floats, t: Ints, first: Ints, hours: float) -> Floats:
    """Fill a missing value with the last observed one of the stay, at most `hours` old.

    Args:
        column: NaN where missing, shape (n,), sorted by stay and time.
        t: Seconds, shape (n,).
        first: Position of the first row of the same stay, shape (n,).
        hours: Age up to which a value stands in, included.
    """
    position = np.arange(column.size)
    last = np.maximum.accumulate(np.where(np.isnan(column), -1, position))
    usable = (last >= first) & (t - t[last] <= hours * HOUR)
    return np.where(usable, column[last], np.nan)


def hold_hours(name: str, rules: Rules) -> int:
    """How long a column is held; potassium is a switch (oddity 21)."""
    return rules.potassium_hold_hours if name == "Potassium" else HOLD_HOURS[name]


def hold_all(grid: Grid, rules: Rules) -> None:
    """Hold every column, in place."""
    for name in CHARTED:
        grid[name][:] = hold(grid[name], grid.t, grid.first, hold_hours(name, rules))


def cross_estimate(grid: Grid, rules: Rules) -> None:
    """Fill columns from related ones, in the order of section 10, in place."""
    _fill(grid["GCS"], sum_of_components(grid))
    _fill(grid["GCS"], gcs_from_rass(grid["RASS"]))
    _fill_fio2(grid)
    _fill(grid["FiO2_100"], _fio2_of_flow(grid, rules))
    _fill_fio2(grid)
    _fill_pressures(grid)
    _fill_temperatures(grid, rules)
    _fill(grid["Ht"], 2.862 * grid["Hb"] + 1.216)
    _fill(grid["Hb"], (grid["Ht"] - 1.216) / 2.862)
    _fill(grid["Direct_bili"], 0.6934 * grid["Total_bili"] - 0.1752)
    _fill(grid["Total_bili"], (grid["Direct_bili"] + 0.1752) / 0.6934)


def sum_of_components(grid: Grid) -> Floats:
    """GCS as the sum of eye, verbal and motor response charted together.

    Whether a database gives the parts is a switch of its own (oddity 16).
    """
    eye, verbal, motor = (grid[name] for name in GCS_PARTS)
    total: Floats = eye + verbal + motor
    return total


def gcs_from_rass(rass: Floats) -> Floats:
    """GCS that stands for a sedation score: 10.1; NaN for anything between the whole numbers."""
    gcs = np.where(rass >= 0, 15.0, np.nan)
    for score, points in _RASS_TO_GCS.items():
        gcs[rass == score] = points
    return gcs


def fio2_from_flow(device: Floats, flow: Floats, *, unknown_is_mask: bool) -> Floats:
    """Percent of oxygen by device and flow (L/min): the table of 10.3.

    Args:
        device: Code of the oxygen device, NaN if unknown, shape (n,).
        flow: NaN if unknown, shape (n,).
        unknown_is_mask: Read an unknown device as a mask (oddity 18, corrected).
    """
    mask = np.isin(device, _MASK)
    if unknown_is_mask:
        mask |= np.isnan(device) | (device == 8)
    cannula, non_rebreather = np.isin(device, _CANNULA), device == _NON_REBREATHER
    percent = np.full(flow.shape, np.nan)
    percent[cannula & np.isnan(flow)] = ROOM_AIR
    _apply_table(percent, cannula, flow, _CANNULA_TABLE)
    _apply_table(percent, mask, flow, _MASK_TABLE)
    percent[non_rebreather & (flow >= 15)] = 100
    percent[non_rebreather & (flow >= 10) & (flow < 15)] = 90
    percent[non_rebreather & (flow < 10)] = 80
    _apply_table(percent, non_rebreather, flow, ((6, 60), (8, 70)))
    return percent


def _apply_table(
    percent: Floats, rows: Bools, flow: Floats, table: tuple[tuple[int, int], ...]
) -> None:
    for limit, value in reversed(table):  # the smallest matching limit is written last
        percent[rows & (flow <= limit)] = value


def _fio2_of_flow(grid: Grid, rules: Rules) -> Floats:
    """10.3: held device and flow, only where the held FiO2 is missing."""
    held = {
        name: hold(grid[name], grid.t, grid.first, HOLD_HOURS[name])
        for name in ("FiO2_100", "O2flow", "Interface")
    }
    percent = fio2_from_flow(
        held["Interface"], held["O2flow"], unknown_is_mask=rules.unknown_device_is_mask
    )
    return np.where(np.isnan(held["FiO2_100"]), percent, np.nan)


def _fill(column: Floats, estimate: Floats) -> None:
    missing = np.isnan(column)
    column[missing] = estimate[missing]


def _fill_fio2(grid: Grid) -> None:
    """10.2: the fraction and the percentage fill each other."""
    _fill(grid["FiO2_1"], grid["FiO2_100"] / 100)
    _fill(grid["FiO2_100"], grid["FiO2_1"] * 100)


def _fill_pressures(grid: Grid) -> None:
    """10.4: whichever one of three pressures is missing."""
    systolic, mean, diastolic = (grid[name] for name in ("SysBP", "MeanBP", "DiaBP"))
    _fill(diastolic, (3 * mean - systolic) / 2)
    _fill(mean, (systolic + 2 * diastolic) / 3)
    _fill(systolic, 3 * mean - 2 * diastolic)


def _fill_temperatures(grid: Grid, rules: Rules) -> None:
    """10.5: put each temperature into the column of its unit, then fill one from the other."""
    celsius, fahrenheit = grid["Temp_C"], grid["Temp_F"]
    _move((fahrenheit > 25) & (fahrenheit < 45), fahrenheit, celsius)
    _move(celsius > 70, celsius, fahrenheit)
    if rules.limit_fahrenheit:
        fahrenheit[(fahrenheit < 68) | (fahrenheit > 113)] = np.nan  # oddity 28
    _fill(fahrenheit, 1.8 * celsius + 32)
    _fill(celsius, (fahrenheit - 32) / 1.8)


def _move(rows: Bools, source: Floats, target: Floats) -> None:
    target[rows] = source[rows]
    source[rows] = np.nan
