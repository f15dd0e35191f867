"""Reference ranges of adults for columns whose unit is known: those of the Sepsis-3 cohort.

Usual limits of laboratories, rounded; they differ a little from hospital to hospital and are drawn
as a band behind a chart, no more. A column counts as known if it has the cohort's name and its mean
is near the range, and if that holds of most such columns: the same names in other units, or scaled,
have none.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from etips.data.scale import LOG_SHIFT, Scaler


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

_NEAR = 3.0
"""A mean of sick people is at most so many times above or below the usual, in our unit."""

_ENOUGH = 0.7
"""Share of the columns with our names that must be near their ranges for any of them to count."""


def ranges_of(columns: Sequence[str], scaler: Scaler | None) -> dict[str, Range]:
    """Reference ranges by column, of those that are known and whose unit is the one meant."""
    if scaler is None:
        return {}
    known = [name for name in columns if name in RANGES and name in scaler.mean_]
    near = [name for name in known if _is_near(RANGES[name], mean_of(name, scaler))]
    return {name: RANGES[name] for name in near} if len(near) >= _ENOUGH * len(known) else {}


def mean_of(column: str, scaler: Scaler) -> float:
    """The training mean of a column, in the unit of the table."""
    mean = scaler.mean_[column]
    return float(np.exp(mean)) - LOG_SHIFT if column in scaler.log else mean


def _is_near(usual: Range, mean: float) -> bool:
    if usual.low <= 0:
        return abs(mean) <= _NEAR * (usual.high - usual.low)
    return usual.low / _NEAR <= mean <= usual.high * _NEAR
