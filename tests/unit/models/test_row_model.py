"""Models of rows: what each form says, and files that do not fit."""

import numpy as np
import pytest

from etips.models.row_model import RowModel, lift, nearest, standardise


def made(form="linear", width=2, d=2, **changes):
    rng = np.random.default_rng(0)
    parts = {
        "mean": np.zeros(d),
        "scale": np.ones(d),
        "basis": rng.normal(size=(0 if form == "linear" else width, d)),
        "phase": np.zeros(0 if form == "linear" else width),
        "weight": rng.normal(size=(1, width, 3)),
        "base": np.zeros((1, 3)),
    }
    return RowModel(reads="summary", form=form, **{**parts, **changes})


def test_a_linear_model_is_a_line_in_standardised_columns():
    model = made(mean=np.array([1.0, 2.0]), scale=np.array([2.0, 1.0]), base=np.ones((1, 3)))
    rows = np.array([[3.0, 2.0], [np.nan, 3.0]])
    expected = 1 + np.array([[1.0, 0.0], [0.0, 1.0]]) @ model.weight[0]
    assert model.outputs(rows)[0] == pytest.approx(expected)


def test_the_nearest_centre_answers():
    centres = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    model = made("nearest", width=3, basis=centres)
    rows = np.array([[3.0, 0.5], [0.1, 0.2], [1.0, 3.5]])
    assert (nearest(rows, centres) == [1, 0, 2]).all()
    assert model.outputs(rows)[0] == pytest.approx(model.weight[0][[1, 0, 2]])


def test_products_of_waves_are_near_a_gaussian_kernel():
    rng = np.random.default_rng(1)
    directions, phase = rng.normal(size=(20_000, 3)), rng.uniform(0, 2 * np.pi, 20_000)
    rows = rng.normal(size=(6, 3))
    waves = lift(rows, directions, phase)
    apart = ((rows[:, None] - rows[None]) ** 2).sum(axis=2)
    assert waves @ waves.T == pytest.approx(np.exp(-apart / 2), abs=0.04)
    model = made("waves", width=5, d=3)
    assert model.outputs(rows).shape == (1, 6, 3)


def test_squares_of_directions_make_a_product_of_two_columns():
    # 4 xy = (x + y)^2 - (x - y)^2, and 4 x = (x + 1)^2 - (x - 1)^2.
    basis, phase = np.array([[1, 1], [1, -1], [1, 0], [1, 0.0]]), np.array([0.0, 0, 1, -1])
    weight = np.array([[1, -1, 0, 0], [0, 0, 1, -1], [1, -1, 1, -1]]).T[None] / 4
    model = made("squares", width=4, basis=basis, phase=phase, weight=weight)
    x, y = rows = np.random.default_rng(3).normal(size=(2, 6))
    assert model.outputs(rows.T)[0] == pytest.approx(np.stack([x * y, x, x * y + x], axis=1))


def test_values_far_out_are_held_and_missing_ones_are_the_mean():
    found = standardise(np.array([[1e9, np.nan]]), np.zeros(2), np.ones(2))
    assert found.tolist() == [[10.0, 0.0]]


def test_arrays_bring_it_back():
    model = made("waves", width=4)
    again = RowModel.from_arrays(model.arrays(), reads="summary", form="waves", n_outputs=3)
    rows = np.random.default_rng(2).normal(size=(5, 2))
    assert (again.outputs(rows) == model.outputs(rows)).all()
    assert again.shape == model.shape == {"rows": "summary", "form": "waves", "n_members": 1}
    assert model.select([0, 0]).n_members == 2


@pytest.mark.parametrize(
    "change",
    [
        {"mean": np.zeros(3)},
        {"scale": np.zeros(2)},
        {"weight": np.full((1, 2, 3), np.nan)},
        {"weight": np.zeros((1, 2, 4))},
        {"base": np.zeros((0, 3))},
        {"base": np.zeros((1, 3), np.float32)},
        {"other": np.zeros(1)},
    ],
    ids=["width", "scale", "nan", "outputs", "members", "type", "name"],
)
def test_arrays_that_do_not_fit_are_refused(change):
    arrays = {**made().arrays(), **change}
    with pytest.raises(ValueError, match="model of rows"):
        RowModel.from_arrays(arrays, reads="summary", form="linear", n_outputs=3)


@pytest.mark.parametrize("told", [{"reads": "all"}, {"form": "cubic"}, {"form": "nearest"}])
def test_a_form_that_is_none_is_refused(told):
    with pytest.raises(ValueError, match="model of rows"):
        RowModel.from_arrays(
            made().arrays(), **{"reads": "last", "form": "linear", **told}, n_outputs=3
        )
