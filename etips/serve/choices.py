"""What may be changed in a "what if", within which limits, and what somebody changed."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from etips.data.coded import Floats32
from etips.data.scale import LOG_SHIFT, Scaler
from etips.serve.fields import LARGEST, Field, Value

_SPREAD = 3.0
"""Standard deviations of the training data that a slider reaches to either side."""

_STEPS = 200


@dataclass(frozen=True)
class Control:
    """A field that can be changed.

    Args:
        key: What the form calls it.
        name: Of the field.
        value: As it is.
        shown: The same in words, to tell whether it was changed.
        levels: Of a category; none for a number.
        low: Where a slider begins.
        high: Where it ends.
        step: By how much it moves.
    """

    key: str
    name: str
    value: Value
    shown: str
    levels: tuple[str, ...]
    low: float
    high: float
    step: float


def make_control(key: str, field: Field, value: Value, reach: tuple[float, float]) -> Control:
    """The control of a field; the slider always reaches the value that is there."""
    low, high = reach
    if isinstance(value, float):
        low, high = min(low, value), max(high, value)
    step = _nice((high - low) / _STEPS)
    low, high = math.floor(low / step) * step, math.ceil(high / step) * step
    shown = value if isinstance(value, str) else show_number(value)
    return Control(
        key, field.name, value, shown, field.levels, _tidy(low), _tidy(high), _tidy(step)
    )


def reaches(
    columns: Mapping[str, int], features: Floats32, scaler: Scaler | None
) -> dict[str, tuple[float, float]]:
    """From where to where each feature is usual, by the mean and spread of the training data.

    Args:
        columns: Place of each feature.
        features: Of the data that are looked at: what is never negative there stays so.
        scaler: Of the policy.
    """
    lowest = np.nanmin(features, axis=0) if len(features) else np.zeros(len(columns))
    return {name: _reach(name, float(lowest[k]), scaler) for name, k in columns.items()}


def _reach(name: str, lowest: float, scaler: Scaler | None) -> tuple[float, float]:
    if scaler is None or name not in scaler.mean_:
        return (0.0, 1.0)
    if name in scaler.left_:
        return (0.0, 1.0)
    mean, spread = scaler.mean_[name], _SPREAD * scaler.scale_[name]
    low, high = mean - spread, mean + spread
    if name in scaler.log:
        return (max(math.exp(low) - LOG_SHIFT, 0.0), math.exp(high) - LOG_SHIFT)
    return (max(low, 0.0) if lowest >= 0 else low, high)


def show_number(value: float | None) -> str:
    """A number as a field shows it: four digits that count."""
    if value is None or math.isnan(value):
        return ""
    return np.format_float_positional(float(f"{value:.4g}"), trim="-")


def read_change(field: Field, control: Control, given: str) -> Value | None:
    """What somebody put into a field; None where it is as it was, or cannot be read."""
    if given == control.shown:
        return None
    if field.levels:
        return given if given in field.levels else None
    try:
        value = float(given)
    except ValueError:
        return None
    least = -LARGEST if field.least is None else field.least
    return min(max(value, least), LARGEST) if math.isfinite(value) else None


def _nice(step: float) -> float:
    """A round step of about this size."""
    if not step > 0:
        return 0.01
    power = 10.0 ** math.floor(math.log10(step))
    return next(unit * power for unit in (1, 2, 5, 10) if unit * power >= step * 0.999)


def _tidy(value: float) -> float:
    return float(f"{value:.8g}")
