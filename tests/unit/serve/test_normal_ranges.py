import numpy as np

from etips.data.scale import Scaler
from etips.serve.normal_ranges import RANGES, ranges_of


def fitted(**means):
    scaler = Scaler(log=("Creatinine",))
    scaler.mean_ = dict(means)
    scaler.scale_ = dict.fromkeys(means, 1.0)
    return scaler


def test_a_column_of_the_cohort_in_its_own_unit_has_a_range():
    own = fitted(MeanBP=75.0, HR=92.0, Creatinine=float(np.log(1.6)), Arterial_BE=-3.0, strange=3.0)
    found = ranges_of(["MeanBP", "HR", "Creatinine", "Arterial_BE", "strange"], own)
    assert set(found) == {"MeanBP", "HR", "Creatinine", "Arterial_BE"}
    assert found["MeanBP"] == RANGES["MeanBP"]


def test_the_same_names_scaled_or_in_another_unit_have_none():
    own = fitted(MeanBP=0.0, HR=0.1, Arterial_BE=0.0, Glucose=-0.1)
    assert ranges_of(list(own.mean_), own) == {}
    own = fitted(MeanBP=75.0, HR=92.0, Sodium=140.0, Creatinine=float(np.log(140.0)))  # micromol/L
    assert "Creatinine" not in ranges_of(list(own.mean_), own)
    assert ranges_of(["MeanBP"], None) == {}


def test_ranges_are_ranges():
    assert all(own.low < own.high for own in RANGES.values())
