"""Scaling by the groups of docs/cohort/rules.md section 19, fitted on training stays only."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_cohorts import Cohort, cohorts

from etips.data import Coded, Scaler, Schema, Trajectories, split
from etips.data.scale import SEPSIS_LOG
from etips.errors import DataError, SettingError

NAN = float("nan")


def stays(columns, **options):
    names = tuple(columns)
    values = np.array(list(columns.values()), np.float32).T
    schema = Schema(sequence=names, n_actions=1, lag=0, indicators=names, **options)
    return Trajectories(values, np.array([0, len(values)]), schema)


def plain_scale(train, test, *, log):
    """Mean and population SD of the training values, of ln(0.1 + x) if asked; clipped at 10."""

    def number(x):
        return math.log(0.1 + x) if log else x

    known = [number(float(np.float32(x))) for x in train if not math.isnan(x)]
    mean = sum(known) / len(known)
    spread = math.sqrt(sum((x - mean) ** 2 for x in known) / len(known)) or 1.0
    found = []
    for x in test:
        z = 0.0 if math.isnan(x) else (number(float(np.float32(x))) - mean) / spread
        found.append(min(max(z, -10.0), 10.0))
    return found


floats = st.lists(st.floats(0, 1000, width=32), min_size=2, max_size=20).filter(
    lambda xs: max(xs) - min(xs) > 1 and not set(xs) <= {0, 1}
)


@given(floats, floats, st.booleans())
def test_scaling_agrees_with_a_plain_second_implementation(train, test, log):
    scaler = Scaler(log=["x"] if log else []).fit(stays({"x": train}))
    found = scaler.transform(stays({"x": test})).sequence[:, 0]
    assert found == pytest.approx(plain_scale(train, test, log=log), rel=1e-4, abs=1e-5)


def test_each_of_the_three_groups_is_treated_its_own_way():
    columns = {
        "HR": [80, 90, 100, 110],
        "BUN": [0, 1, 2, 30],
        "mechvent": [0, 1, 1, 0],
        "code": [3, 4, 5, 6],
    }
    scaled = Scaler(log=SEPSIS_LOG, leave=["code"]).fit_transform(stays(columns)).sequence
    assert scaled[:, 0] == pytest.approx(plain_scale(columns["HR"], columns["HR"], log=False))
    assert scaled[:, 1] == pytest.approx(
        plain_scale(columns["BUN"], columns["BUN"], log=True), rel=1e-5
    )
    assert scaled[:, 2].tolist() == columns["mechvent"]
    assert scaled[:, 3].tolist() == columns["code"]


def test_no_logarithm_is_taken_of_a_feature_because_of_its_name():
    """A table may hold a column called INR in units where its logarithm makes no sense."""
    assert len(SEPSIS_LOG) == 12  # the cohort scripts' 11, and max_dose_vaso
    found = Scaler().fit_transform(stays({"INR": [-3, 0, 3]})).sequence.ravel()
    assert found == pytest.approx([-(1.5**0.5), 0, 1.5**0.5])


def test_a_value_far_out_is_held_at_ten_spreads():
    scaler = Scaler().fit(stays({"x": [0, 1, 2, 3]}))
    assert scaler.transform(stays({"x": [1e30, -1e30, 3]})).sequence[:2, 0].tolist() == [10, -10]


def test_a_column_that_never_varies_becomes_zero():
    scaler = Scaler().fit(stays({"x": [7.3] * 5}))
    assert scaler.scale_["x"] == 1
    assert scaler.transform(stays({"x": [7.3] * 2})).sequence.ravel() == pytest.approx(0, abs=1e-6)


def test_a_missing_value_becomes_the_training_mean_in_every_group():
    train = stays({"x": [2, 4, NAN], "BUN": [0, 3, NAN], "b": [0, 1, NAN], "c": [5, 7, NAN]})
    scaled = Scaler(log=SEPSIS_LOG, leave=["c"]).fit_transform(train).sequence[2]
    assert scaled.tolist() == [0, 0, 0.5, 6]
    fitted = Scaler(log=SEPSIS_LOG).fit(train)
    assert fitted.mean_["BUN"] == pytest.approx((math.log(0.1) + math.log(3.1)) / 2)


def test_a_logarithm_asked_for_is_taken_though_training_holds_only_zero_and_one():
    """No vasopressor in a small fold must not leave the doses of others unscaled."""
    scaler = Scaler(log=SEPSIS_LOG).fit(stays({"max_dose_vaso": [0, 0, 0, NAN]}))
    found = scaler.transform(stays({"max_dose_vaso": [0, 4.9, NAN]})).sequence.ravel()
    assert found == pytest.approx([0, math.log(5) - math.log(0.1), 0], abs=1e-6)


def test_a_column_never_measured_in_training_becomes_zero():
    scaler = Scaler().fit(stays({"x": [NAN, NAN]}))
    assert scaler.transform(stays({"x": [NAN, NAN]})).sequence.ravel().tolist() == [0, 0]


def test_static_features_are_scaled_too():
    data = Cohort(seed=0, n_stays=50, n_static=2).make()
    scaled = Scaler().fit_transform(data)
    assert scaled.static.mean(axis=0) == pytest.approx(0, abs=1e-5)
    assert scaled.static.std(axis=0) == pytest.approx(1, abs=1e-5)
    assert scaled.sequence.mean(axis=0) == pytest.approx(0, abs=1e-5)
    assert scaled.sequence.std(axis=0) == pytest.approx(1, abs=1e-5)


@given(cohorts, st.integers(0, 99))
def test_d3_scaling_learns_from_training_stays_only(cohort, seed):
    """D3: alter every number of the test stays; training arrays and statistics stay the same."""
    data = cohort.make()
    if data.n_stays < 2:
        return
    held = np.zeros(data.n_stays, bool)
    held[split(replace(data, stay=np.arange(data.n_stays)), seed=seed, by_group=False)[1].stay] = (
        True
    )
    rows = np.repeat(held, np.diff(data.offsets))[:, None]
    other = data.with_features(
        np.where(rows, np.float32(1e6), data.sequence),
        np.where(held[:, None], np.float32(-1e6), data.static),
    )
    first, second = (Scaler().fit(whole.subset(~held)) for whole in (data, other))
    assert first.to_json() == second.to_json()
    a, b = (
        scaler.transform(whole.subset(~held)) for scaler, whole in ((first, data), (second, other))
    )
    assert a.sequence.tobytes() == b.sequence.tobytes()
    assert a.static.tobytes() == b.static.tobytes()


@given(st.integers(0, 999), st.sampled_from([np.float32, np.uint8]), st.booleans())
def test_a_coded_sequence_is_scaled_like_the_plain_one_and_stays_coded(seed, kind, log):
    rng = np.random.default_rng(seed)
    table = (rng.random((5, 2)) * 200).astype(kind)
    code = rng.integers(0, 4, 30).astype(np.int32)  # row 4 of the table is not used
    coded = Coded(table, code, 0.5)
    schema = Schema(sequence=("a", "b"), n_actions=1, lag=0)
    offsets = np.array([0, 10, 30])
    mine, plain = (Trajectories(s, offsets, schema) for s in (coded, coded[:]))
    scalers = [Scaler(log=["a"] if log else []).fit(data) for data in (mine, plain)]
    for name in ("mean", "scale"):
        first, second = (scaler.to_json()[name] for scaler in scalers)
        assert first == pytest.approx(second, rel=1e-9)
    assert scalers[0].left_ == scalers[1].left_
    scaled = scalers[0].transform(mine)
    assert isinstance(scaled.sequence, Coded)
    assert scaled.sequence[:] == pytest.approx(scalers[1].transform(plain).sequence, abs=1e-5)


def test_a_row_of_a_coded_table_that_nobody_uses_may_lack_a_logarithm():
    coded = Coded(np.array([[1], [5], [-9]], np.float32), np.array([0, 1], np.int32))
    data = Trajectories(coded, np.array([0, 2]), Schema(sequence=("BUN",), n_actions=1))
    assert np.isfinite(Scaler().fit_transform(data).sequence[:]).all()


def test_a_coded_sequence_of_zero_and_one_is_left_as_it_is():
    coded = Coded(np.array([[0], [1]], np.uint8), np.array([0, 1], np.int32))
    data = Trajectories(coded, np.array([0, 2]), Schema(sequence=("x",), n_actions=1))
    assert Scaler().fit_transform(data).sequence.table.dtype == np.uint8


@pytest.mark.parametrize("when", ["fit", "transform"])
def test_the_logarithm_of_a_negative_value_is_refused_by_row(when):
    values = np.ones(70_000)
    values[69_000] = -0.1
    bad, good = stays({"BUN": values}), stays({"BUN": [1, 2, 3]})
    scaler = Scaler(log=["BUN"]).fit(good)
    message = (
        r"^feature BUN: must be above -0\.1 for its logarithm; "
        r"1 of 70000 rows fail, first at row 69000\.$"
    )
    with pytest.raises(DataError, match=message):
        scaler.fit(bad) if when == "fit" else scaler.transform(bad)


def test_a_feature_the_scaler_does_not_know_is_refused():
    with pytest.raises(DataError, match=r"^feature y: is not one the scaler was fitted on\.$"):
        Scaler().fit(stays({"x": [1, 2]})).transform(stays({"y": [1, 2]}))


def test_a_feature_cannot_be_in_two_groups():
    with pytest.raises(SettingError, match=r"^scaler: a feature is either in log or in leave\.$"):
        Scaler(log=["x"], leave=["x"]).fit(stays({"x": [1, 2]}))


def test_a_fitted_scaler_survives_json_and_scales_the_same():
    train = Cohort(seed=1, n_stays=9).make()
    scaler = Scaler(log=["a"], leave=["vital1"]).fit(train)
    again = Scaler.from_json(json.loads(json.dumps(scaler.to_json())))
    assert again.to_json() == scaler.to_json()
    other = Cohort(seed=2).make()
    assert again.transform(other).sequence.tobytes() == scaler.transform(other).sequence.tobytes()


GOOD = {"log": [], "leave": [], "mean": {"x": 1.0}, "scale": {"x": 2.0}, "left": []}


@pytest.mark.parametrize(
    "changes",
    [
        {"mean": None},
        {"mean": {"x": "a"}},
        {"mean": {"x": "nan"}},
        {"mean": {"x": None}},
        {"scale": {}},
        {"scale": {"x": 0}},
        {"scale": {"x": -1}},
        {"scale": {"x": 10**400}},
        {"scale": {"x": float("inf")}},
        {"left": ["y"]},
        {"left": [1]},
        {"log": "x"},
    ],
)
def test_a_scaler_that_was_tampered_with_is_refused(changes):
    assert Scaler.from_json(GOOD).mean_ == {"x": 1.0}
    with pytest.raises(SettingError, match=r"^scaler: is not as it was saved\.$"):
        Scaler.from_json({**GOOD, **changes})
    with pytest.raises(SettingError, match=r"^scaler: is not as it was saved\.$"):
        Scaler.from_json({key: GOOD[key] for key in GOOD if key not in changes})
