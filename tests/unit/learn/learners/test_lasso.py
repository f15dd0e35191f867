"""The l1-penalised regression with an action's own coefficients."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from etips.learn.learners import lasso
from etips.learn.learners.lasso import Products, fit_lasso


def trial(n=600, d=4, k=3, seed=0):
    rng = np.random.default_rng(seed)
    rows, action = rng.normal(size=(n, d)), rng.integers(0, k, n)
    own = np.zeros((k, d))
    own[1, 0], own[2, 1] = 1.0, -1.0
    loss = 5 + rows[:, 2] + (rows * own[action]).sum(axis=1) + 0.1 * rng.normal(size=n)
    return rows, action, loss, rng.integers(0, 5, n)


def test_it_finds_what_made_the_loss_and_hardly_anything_else():
    rows, action, loss, fold = trial()
    found = fit_lasso(rows, action, loss, fold, 3)
    expected = np.array([[5, 0, 0, 1, 0], [5, 1, 0, 1, 0], [5, 0, -1, 1, 0.0]])
    assert found == pytest.approx(expected, abs=0.05)


def test_at_a_penalty_it_agrees_with_scikit_learn():
    rows, action, loss, _ = trial()
    loss = loss - loss.mean()
    products = Products.of(rows, action, loss, 3)
    penalty = 0.05
    (found,) = lasso._path(products, np.array([penalty]))
    ones = np.insert(rows, 0, 1.0, axis=1)
    blocks = [np.where((action == a)[:, None], ones, 0.0) for a in range(3)]
    design = np.concatenate([rows, *blocks], axis=1)
    scale = np.sqrt((design**2).mean(axis=0))
    theirs = Lasso(alpha=penalty, tol=1e-10, max_iter=100_000).fit(design / scale, loss)
    wanted = theirs.predict(design / scale)
    ours = (ones * found[action]).sum(axis=1)
    assert ours == pytest.approx(wanted, abs=2e-3)


def test_folds_are_differences_and_errors_are_sums():
    rows, action, loss, fold = trial(100)
    whole, part = (
        Products.of(rows[some], action[some], loss[some], 3) for some in (slice(None), fold == 0)
    )
    rest = whole.less(part)
    direct = Products.of(rows[fold != 0], action[fold != 0], loss[fold != 0], 3)
    assert rest.gram == pytest.approx(direct.gram)
    assert rest.size == (fold != 0).sum()
    coefficients = np.random.default_rng(1).normal(size=(3, 5))
    said = (np.insert(rows, 0, 1.0, axis=1) * coefficients[action]).sum(axis=1)
    assert whole.squared_error(coefficients) == pytest.approx(((loss - said) ** 2).sum())


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_losses_that_are_all_alike_and_an_action_nobody_took_are_no_obstacle(shift):
    rows, action, _, fold = trial(60)
    found = fit_lasso(rows, action, np.full(60, 1.0 + shift), fold, 4)
    assert np.isfinite(found).all()
    assert found[:, 0] == pytest.approx(np.full(4, 1 + shift))


def test_of_wide_rows_the_columns_that_go_with_the_loss_take_part():
    rows, action, loss, fold = trial(500)
    wide = np.concatenate([np.random.default_rng(2).normal(size=(500, 300)), rows], axis=1)
    found = fit_lasso(wide, action, loss, fold, 3)
    assert found.shape == (3, 305)
    assert (found[:, 1:] != 0).any(axis=0).sum() <= lasso.MOST_COLUMNS
    expected = np.array([[0, 0, 1], [1, 0, 1], [0, -1, 1.0]])
    assert found[:, 301:304] == pytest.approx(expected, abs=0.15)
