import numpy as np
import pytest

from etips.evaluation.reweighting import tilt
from etips.evaluation.reweighting.tilt import fit_ridge, fit_tilt, log_table, tilted


def drawn(n=3000, n_actions=3, seed=0, theta=None):
    rng = np.random.default_rng(seed)
    functions = np.column_stack([np.ones(n), rng.normal(size=(n, 3))])
    start = np.log(rng.dirichlet(np.ones(n_actions) * 5, n))
    theta = np.zeros((4, n_actions)) if theta is None else theta
    table = tilted(start, functions, theta)
    action = (rng.random(n)[:, None] > table.cumsum(axis=1)).sum(axis=1).clip(max=n_actions - 1)
    return start, functions, action


def test_a_theta_of_zero_changes_nothing():
    start, functions, _ = drawn(n=50)
    assert tilted(start, functions, np.zeros((4, 3))) == pytest.approx(np.exp(start))


def test_two_actions_by_hand():
    table = tilted(np.log([[0.5, 0.5]]), np.array([[1.0]]), np.array([[np.log(3.0), 0.0]]))
    assert table == pytest.approx(np.array([[0.75, 0.25]]))


def test_without_a_ridge_the_residuals_are_orthogonal_to_every_function():
    theta = np.array([[0.3, 0, 0], [1.0, 0, -1], [0, 0.5, 0], [0, 0, 0]])
    start, functions, action = drawn(theta=theta)
    fitted = fit_ridge(start, functions, action, ridge=np.full(4, 1e-9), start=np.zeros((4, 3)))
    residual = np.eye(3)[action] - tilted(start, functions, fitted)
    assert np.abs(functions.T @ residual / len(action)).max() < 1e-4


def test_the_fit_agrees_with_plain_gradient_descent():
    start, functions, action = drawn(
        n=400, theta=np.array([[0.0] * 3, [1.0, 0, 0], *[[0.0] * 3] * 2])
    )
    ridge = np.full(4, 0.01)
    slow = np.zeros((4, 3))
    for _ in range(4000):
        slope = functions.T @ (tilted(start, functions, slow) - np.eye(3)[action]) / len(action)
        slow -= 0.5 * (slope + ridge[:, None] * slow)
    quick = fit_ridge(start, functions, action, ridge=ridge, start=np.zeros((4, 3)))
    assert quick == pytest.approx(slow, abs=1e-3)


def test_functions_that_matter_are_kept_and_noise_is_shrunk_away():
    theta = np.array([[0.0] * 3, [1.0, 0, -1], [0.0] * 3, [0.0] * 3])
    start, functions, action = drawn(theta=theta)
    fitted = fit_tilt(start, functions, action)
    contrast = fitted[:, 0] - fitted[:, 2]
    assert contrast[1] == pytest.approx(2, abs=0.25)
    assert np.abs(contrast[2:]).max() < 0.12


def test_a_rare_action_is_tilted_less_than_a_common_one():
    rng = np.random.default_rng(5)
    functions = np.column_stack([np.ones(400), rng.normal(size=400)])
    start = np.log(np.tile([0.49, 0.5, 0.01], (400, 1)))
    fitted = fit_tilt(start, functions, np.where(functions[:, 1] > 0, 0, 1))
    assert abs(fitted[1, 2]) < abs(fitted[1, 0]) / 2


def test_zeros_in_a_table_stay_finite():
    table = tilted(log_table(np.array([[1.0, 0.0]])), np.ones((1, 1)), np.array([[0.0, 2.0]]))
    assert table == pytest.approx(np.array([[1.0, 0.0]]), abs=1e-9)


def test_a_fit_that_may_stop_sooner_asks_less_often_and_is_nearly_as_good(monkeypatch):
    rng = np.random.default_rng(5)
    functions = np.column_stack([np.ones(2000), rng.normal(size=(2000, 4))])
    before = np.log(np.full((2000, 3), 1 / 3))
    theta = rng.normal(size=(5, 3)) * 0.4
    chance = tilted(before, functions, theta)
    action = (chance.cumsum(axis=1) < rng.random((2000, 1))).sum(axis=1)
    asked, plain = [], tilt.normalised
    monkeypatch.setattr(tilt, "normalised", lambda *given: asked.append(1) or plain(*given))
    close = fit_tilt(before, functions, action)
    n_close = len(asked)
    rough = fit_tilt(before, functions, action, enough=1e-3)
    assert len(asked) - n_close < n_close
    likely = [
        np.log(tilted(before, functions, own)[np.arange(2000), action]).mean()
        for own in (close, rough)
    ]
    assert likely[1] == pytest.approx(likely[0], abs=1e-3)


def test_likelihood_and_slope_are_those_of_the_tilted_table():
    rng = np.random.default_rng(6)
    n, functions = 501, np.column_stack([np.ones(501), rng.normal(size=(501, 3))])
    before, action = np.log(rng.dirichlet(np.ones(9), n)), rng.integers(0, 9, n)
    theta = rng.normal(size=(4, 9))
    kept = before.copy()
    value, slope = tilt._Likelihood.of(before, functions, action).value_and_slope(theta)
    chance = tilted(before, functions, theta)
    assert value == pytest.approx(-np.log(chance[np.arange(n), action]).mean(), rel=1e-12)
    chance[np.arange(n), action] -= 1
    np.testing.assert_allclose(slope, functions.T @ chance / n, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(before, kept)
