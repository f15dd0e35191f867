"""How values of patients are shown and changed: usual ranges, ages in years, sliders.

Ranges are usual limits of laboratories for adults, rounded; they differ a little from hospital to
hospital and are drawn as a band behind a chart, no more.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from etips.data.scale import LOG_SHIFT, Scaler
from etips.serve.fields import LARGEST, Field, Value


class Range(NamedTuple):
    """Lowest and highest usual value, and the unit."""

    low: float
    high: float
    unit: str


RANGES: Mapping[str, Range] = MappingProxyType(
    {
        "GCS": Range(14, 15, ""),
        "HR": Range(60, 100, "/min"),
        "SysBP": Range(100, 140, "mmHg"),
        "MeanBP": Range(65, 100, "mmHg"),
        "DiaBP": Range(60, 90, "mmHg"),
        "RR": Range(12, 20, "/min"),
        "SpO2": Range(94, 100, "%"),
        "Temp_C": Range(36.0, 37.8, "°C"),
        "Potassium": Range(3.5, 5.1, "mmol/L"),
        "Sodium": Range(135, 145, "mmol/L"),
        "Chloride": Range(98, 107, "mmol/L"),
        "Glucose": Range(70, 140, "mg/dL"),
        "BUN": Range(7, 20, "mg/dL"),
        "Creatinine": Range(0.6, 1.2, "mg/dL"),
        "Magnesium": Range(1.7, 2.3, "mg/dL"),
        "Calcium": Range(8.5, 10.3, "mg/dL"),
        "Ionised_Ca": Range(1.12, 1.32, "mmol/L"),
        "SGOT": Range(8, 40, "U/L"),
        "SGPT": Range(7, 45, "U/L"),
        "Total_bili": Range(0.2, 1.2, "mg/dL"),
        "Albumin": Range(3.5, 5.0, "g/dL"),
        "Hb": Range(12, 16.5, "g/dL"),
        "WBC_count": Range(4, 11, "10⁹/L"),
        "Platelets_count": Range(150, 400, "10⁹/L"),
        "PTT": Range(25, 36, "s"),
        "PT": Range(11, 14, "s"),
        "INR": Range(0.8, 1.2, ""),
        "Arterial_pH": Range(7.35, 7.45, ""),
        "paO2": Range(75, 100, "mmHg"),
        "paCO2": Range(35, 45, "mmHg"),
        "Arterial_BE": Range(-2, 2, "mmol/L"),
        "HCO3": Range(22, 28, "mmol/L"),
        "Arterial_lactate": Range(0.5, 2.0, "mmol/L"),
        "Shock_Index": Range(0.5, 0.7, ""),
        "PaO2_FiO2": Range(400, 500, "mmHg"),
    }
)
"""By column of the Sepsis-3 cohort, in its units."""

_NEAR = 3.0
"""A mean of sick people is at most so many times above or below the usual, in our unit."""

_ENOUGH = 0.7
"""Share of the columns with our names that must be near their ranges for any of them to count."""

_SPREAD = 3.0
"""Standard deviations of the training data that a slider reaches to either side."""

_SLIDER_STEPS = 200
_YEAR = 365.25
_ADULTS = (18 * _YEAR, 120 * _YEAR)  # no mean of ages in years is that large


def ranges_of(columns: Sequence[str], scaler: Scaler | None) -> dict[str, Range]:
    """Usual ranges by column, where the column has the cohort's name and most likely its unit.

    The mean must be near the range, and that of most such columns: the same names in other units,
    or scaled, have no range.
    """
    if scaler is None:
        return {}
    known = [name for name in columns if name in RANGES and name in scaler.mean_]
    near = []
    for name in known:
        mean, (low, high, _) = mean_of(name, scaler), RANGES[name]
        if abs(mean) <= _NEAR * (high - low) if low <= 0 else low / _NEAR <= mean <= high * _NEAR:
            near.append(name)
    return {name: RANGES[name] for name in near} if len(near) >= _ENOUGH * len(known) else {}


def mean_of(column: str, scaler: Scaler) -> float:
    """The training mean of a column, in the unit of the table."""
    mean = scaler.mean_[column]
    return float(np.exp(mean)) - LOG_SHIFT if column in scaler.log else mean


def in_days(name: str, scaler: Scaler | None) -> bool:
    """Whether a column is an age in days, as in the sepsis cohorts: by its name and its mean."""
    if scaler is None or name.lower() != "age" or name not in scaler.mean_:
        return False
    return _ADULTS[0] <= mean_of(name, scaler) <= _ADULTS[1]


def show_fact(name: str, value: Value, scaler: Scaler | None) -> Value:
    """What a page shows of a column of a stay; an age in days in years."""
    if isinstance(value, float) and in_days(name, scaler):
        return f"{value / _YEAR:.0f} years"
    return value


def show_number(value: float | None) -> str:
    """A number as a field shows it: four digits that count."""
    if value is None or math.isnan(value):
        return ""
    return np.format_float_positional(float(f"{value:.4g}"), trim="-")


@dataclass(frozen=True)
class Control:
    """A field that can be changed in a "what if", by its key in the form.

    `shown` is its value as text: a form that sends it has not changed it. A slider, where there are
    no levels, reaches from `low` to `high`.
    """

    key: str
    name: str
    value: Value
    shown: str
    levels: tuple[str, ...]
    low: float
    high: float

    @classmethod
    def of(
        cls, key: str, field: Field, value: Value, reach: tuple[float, float], scaler: Scaler | None
    ) -> "Control":
        """The control of a field; the slider always reaches the value that is there."""
        low, high = reach
        if isinstance(value, float):
            low, high = min(low, value), max(high, value)
        step = _round_up((high - low) / _SLIDER_STEPS)
        return cls(
            key,
            f"{field.name}, in days" if in_days(field.name, scaler) else field.name,
            value,
            value if isinstance(value, str) else show_number(value),
            field.levels,
            float(f"{math.floor(low / step) * step:.8g}"),
            float(f"{math.ceil(high / step) * step:.8g}"),
        )

    def read(self, text: str, least: float) -> Value | None:
        """What was typed, `least` or more; None where it is as it was, or cannot be read."""
        if text == self.shown:
            return None
        if self.levels:
            return text if text in self.levels else None
        try:
            value = float(text)
        except ValueError:
            return None
        return min(max(value, least), LARGEST) if math.isfinite(value) else None


def reach_of(name: str, lowest: float, scaler: Scaler | None) -> tuple[float, float]:
    """From where to where a number is usual, by the mean and spread of the training data.

    What is never below zero in the data that are looked at, whose `lowest` value this is, stays so.
    """
    if scaler is None or name not in scaler.mean_ or name in scaler.left_:
        return (0.0, 1.0)
    mean, spread = scaler.mean_[name], _SPREAD * scaler.scale_[name]
    low, high = mean - spread, mean + spread
    if name in scaler.log:
        return (max(math.exp(low) - LOG_SHIFT, 0.0), math.exp(high) - LOG_SHIFT)
    return (max(low, 0.0) if lowest >= 0 else low, high)


def _round_up(step: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    if not step > 0:
        return 0.01
    power = 10.0 ** math.floor(math.log10(step))
    return next(unit * power for unit in (1, 2, 5, 10) if unit * power >= step * 0.999)
