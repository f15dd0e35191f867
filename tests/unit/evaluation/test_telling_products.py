"""Products of features that go with a target though none of them does alone."""

import numpy as np
import pytest

from etips.evaluation.telling_products import MOST_PRODUCTS, find_products


def draw(n=1500, width=6, seed=0):
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(n, width))


@pytest.mark.parametrize("names", [(0, 3), (1, 2, 4)])
def test_a_product_of_two_or_three_features_is_found(names):
    rng, rows = draw()
    truth = np.sign(rows[:, list(names)]).prod(axis=1)
    found = find_products(rows, truth + 2 * rng.normal(size=len(rows)))
    later = np.random.default_rng(1).normal(size=(400, 6))
    values = found.of(later)
    told = [
        np.corrcoef(value, np.sign(later[:, list(names)]).prod(axis=1))[0, 1] for value in values.T
    ]
    assert max(np.abs(told)) > 0.7


def test_noise_has_next_to_no_products():
    counts = []
    for seed in range(20):
        rng, rows = draw(n=600, seed=seed)
        counts.append(find_products(rows, rng.normal(size=600)).factors.shape[0])
    assert np.mean(counts) < 0.5
    assert max(counts) <= MOST_PRODUCTS


def test_many_columns_constants_and_a_constant_target_are_no_trouble():
    rng, rows = draw(width=60)
    rows[:, 5] = 1.0
    assert find_products(rows, np.ones(len(rows))).of(rows).shape == (len(rows), 0)
    found = find_products(rows, rows[:, 7] * rows[:, 9] + 0.1 * rng.normal(size=len(rows)))
    assert 5 not in found.columns
    assert found.of(rows).shape == (len(rows), len(found.factors))
    assert find_products(np.zeros((50, 3)), rng.normal(size=50)).of(np.zeros((2, 3))).shape == (
        2,
        0,
    )
