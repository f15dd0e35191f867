import numpy as np
import pytest
from served_runs import desk

from etips.data.scale import Scaler
from etips.serve.choices import make_control, reaches, read_change, show_number


def test_a_slider_reaches_three_deviations_and_the_value_that_is_there():
    scaler = Scaler(log=("dose",))
    scaler.mean_ = {"x": 10.0, "dose": 0.0, "flag": 0.5}
    scaler.scale_ = {"x": 5.0, "dose": 1.0, "flag": 1.0}
    scaler.left_ = frozenset({"flag"})
    rows = np.array([[1.0, 0.0, 1.0]], np.float32)
    found = reaches({"x": 0, "dose": 1, "flag": 2}, rows, scaler)
    assert found["x"] == (0.0, 25.0)  # never below zero in the data
    assert found["dose"][0] == 0
    assert found["dose"][1] == pytest.approx(np.exp(3) - 0.1)
    assert found["flag"] == (0.0, 1.0)
    control = make_control("s0", desk().form.sequence[0], 70.0, (0.0, 25.0))
    assert control.high >= 70
    assert control.low == 0


def test_numbers_are_shown_with_four_digits_and_never_as_powers():
    shown = [show_number(own) for own in (0.000123456, 123456.7, 0.1, -2.0, None, float("nan"))]
    assert shown == ["0.0001235", "123500", "0.1", "-2", "", ""]


def test_only_what_was_changed_is_read_and_nonsense_is_not():
    pressure, _, shift = desk().form.sequence
    control = make_control("s0", pressure, 61.23456, (0.0, 100.0))
    for given, value in (("61.23", None), ("70", 70.0), ("x", None), ("nan", None), ("1e99", 1e30)):
        assert read_change(pressure, control, given) == value
    control = make_control("s2", shift, "day", (0.0, 1.0))
    for given, value in (("day", None), ("night", "night"), ("dusk", None)):
        assert read_change(shift, control, given) == value
