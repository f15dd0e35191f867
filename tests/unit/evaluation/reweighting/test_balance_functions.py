import numpy as np
import pytest
from confounded_worlds import KINDS, confounded, marginal, regressed_prognosis

from etips.evaluation.reweighting.balance_functions import (
    MOST_FUNCTIONS,
    choose_functions,
    units_of,
)


def chosen_in(world):
    residual = np.eye(3)[world.action] - marginal(world)
    return choose_functions(world.x, regressed_prognosis(world), world.loss, residual)


def values_in(world):
    return chosen_in(world).of(world.x, regressed_prognosis(world))


@pytest.mark.parametrize("kind", KINDS)
def test_the_chosen_functions_hold_what_the_clinicians_act_on(kind):
    world = confounded(kind, n_stays=600, seed=1)
    severity = np.log(world.risk / (1 - world.risk))
    values = values_in(world)
    left = severity - values @ np.linalg.lstsq(values, severity, rcond=None)[0]
    assert left.var() < 0.1 * severity.var()


def test_the_first_functions_are_one_and_the_prognosis():
    world = confounded("linear", n_stays=300, seed=2)
    values = values_in(world)
    outlook = regressed_prognosis(world)
    assert np.array_equal(values[:, 0], np.ones(len(values)))
    assert np.corrcoef(values[:, 1], outlook)[0, 1] > 0.99
    assert values.shape[1] <= 2 + MOST_FUNCTIONS


def test_values_are_standardised_and_cut_so_that_no_tail_rules():
    world = confounded("square", n_stays=400, seed=3)
    world.x[0] = 1e6
    values = values_in(world)[:, 1:]
    assert np.abs(values).max() <= 3
    assert np.isfinite(values).all()


def test_missing_and_constant_features_are_borne():
    world = confounded("linear", n_stays=300, seed=4)
    gaps = world.x.copy()
    gaps[::7, 0] = np.nan
    gaps[:, 3] = 5.0
    gaps[:, 4] = np.nan
    residual = np.eye(3)[world.action] - marginal(world)
    functions = choose_functions(gaps, regressed_prognosis(world), world.loss, residual)
    assert np.isfinite(functions.of(gaps, regressed_prognosis(world))).all()


def test_with_right_propensities_hardly_any_function_goes_with_the_residuals():
    counts = []
    for seed in range(5):
        world = confounded("product", n_stays=600, seed=seed)
        residual = np.eye(3)[world.action] - world.right
        functions = choose_functions(world.x, regressed_prognosis(world), world.loss, residual)
        counts.append(len(functions.pairs))
    assert np.mean(counts) <= 3


def test_units_leave_missing_values_out():
    units = units_of(np.array([[1.0, 7.0], [3.0, 7.0], [np.nan, 7.0]]))
    assert units.centre.tolist() == [2.0, 7.0]
    assert units.spread.tolist() == [1.0, 1.0]
    assert units.standardised(np.array([[np.nan, 8.0]])).tolist() == [[0.0, 1.0]]


def test_values_of_some_rows_are_those_among_all():
    world = confounded("product", n_stays=400, seed=5)
    functions, outlook = chosen_in(world), regressed_prognosis(world)
    rows = np.arange(3, len(outlook), 7)
    some = functions.of(world.x, outlook, rows)
    assert np.array_equal(some, functions.of(world.x, outlook)[rows])
