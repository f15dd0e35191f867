"""Shapley values of trees against the definition, by every order of the features."""

from itertools import permutations

import numpy as np
import pytest

from etips.explanation.tree_shares import tree_shares
from etips.models.forest import Forest, plant
from etips.models.forest import Tree as ForestTree


def grown(rng, n_columns):
    """A tree of four leaves that asks for some column, twice for one of them now and then."""
    column = rng.integers(0, n_columns, 3).tolist()
    cut = rng.normal(size=3).tolist()
    gaps = (rng.random(3) < 0.5).tolist()
    return ForestTree(
        column, cut, gaps, [0b0011, 0b0001, 0b0100], [0b1100, 0b0010, 0b1000],
        rng.normal(size=4).tolist(),
    )  # fmt: skip


def by_definition(forest: Forest, row, reference, lean):
    d = len(row)
    total = np.zeros(d)
    orders = list(permutations(range(d)))
    for order in orders:
        mixed = reference.copy()
        before = forest.outputs(mixed[None]).mean(0)[0] @ lean
        for feature in order:
            mixed[feature] = row[feature]
            now = forest.outputs(mixed[None]).mean(0)[0] @ lean
            total[feature] += now - before
            before = now
    return total / len(orders)


@pytest.mark.parametrize("seed", range(4))
def test_shares_are_shapley_values(seed):
    rng = np.random.default_rng(seed)
    trees = [grown(rng, 4) for _ in range(8)]
    output = [0, 1, 2, -1, 0, 1, 2, 1]
    forest = plant(trees, [0, 0, 0, 0, 1, 1, 1, 1], output, np.zeros((2, 3)))
    row, reference, lean = rng.normal(size=4), rng.normal(size=4), np.array([1.0, -1.0, 0.3])
    row[0] = np.nan
    shares = tree_shares(forest, row, reference, lean)
    np.testing.assert_allclose(shares, by_definition(forest, row, reference, lean), atol=1e-12)


def test_no_trees_share_nothing():
    forest = plant([], [], [], np.zeros((1, 2)))
    assert tree_shares(forest, np.ones(3), np.zeros(3), np.array([1.0, -1.0])).tolist() == [0, 0, 0]
