"""Codes that may stand for a missing value are asked about."""

import numpy as np
import pandas as pd
import pytest

import etips
from etips.notes import collecting_notes

N = 120


def asked(**columns):
    rng = np.random.default_rng(0)
    table = {"drug": ["a", "b"] * (N // 2), "hr": rng.normal(80, 9, N), "y": rng.integers(0, 2, N)}
    with collecting_notes() as notes:
        etips.read_table(pd.DataFrame({**table, **columns}), action="drug", loss="y")
    return [line for line in notes if "does it stand for" in line]


def with_code(code, rows=20):
    values = np.random.default_rng(1).uniform(1, 6, N)
    values[:rows] = code
    return values


@pytest.mark.parametrize("code", [-9, 99, 999, -999])
def test_a_code_far_from_all_values_is_asked_about(code):
    line = f"column lactate holds {code} and nothing near it: does it stand for a missing value? "
    assert asked(lactate=with_code(code)) == [f"{line}Then say --na lactate={code}"]


def test_values_that_are_near_others_rare_or_no_code_are_not():
    assert asked(weight=np.linspace(40, 99, N).round()) == []
    assert asked(lactate=with_code(999, rows=3)) == []
    assert asked(lactate=with_code(250)) == []
    assert asked(same=[99] * N) == []


def test_actions_that_mean_nobody_knows_are_asked_about():
    line = "99 is read as an action: does it stand for an unknown one? Then say --na drug=99"
    assert asked(drug=[10, 20, 30, 99] * (N // 4)) == [line]
    assert asked(drug=["none", "Unknown"] * (N // 2)) == [line.replace("99", "Unknown")]
    assert asked(drug=[0, 50, 99] * (N // 3)) == []
