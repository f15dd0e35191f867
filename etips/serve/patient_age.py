"""The age of a patient in years, where the table has it in days, as the sepsis cohorts do."""

from etips.data.scale import Scaler
from etips.serve.fields import Value
from etips.serve.normal_ranges import mean_of

_YEAR = 365.25
_ADULTS = (18 * _YEAR, 120 * _YEAR)  # no mean of ages in years is that large


def in_days(name: str, scaler: Scaler | None) -> bool:
    """Whether a column is an age in days: by its name and the mean of the training data."""
    if scaler is None or name.lower() != "age" or name not in scaler.mean_:
        return False
    return _ADULTS[0] <= mean_of(name, scaler) <= _ADULTS[1]


def show_fact(name: str, value: Value, scaler: Scaler | None) -> Value:
    """What a page shows of a column of a stay."""
    if isinstance(value, float) and in_days(name, scaler):
        return f"{value / _YEAR:.0f} years"
    return value


def show_name(name: str, scaler: Scaler | None) -> str:
    """What a page calls a column that can be changed: in the unit of the table."""
    return f"{name}, in days" if in_days(name, scaler) else name
