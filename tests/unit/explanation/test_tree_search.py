"""The best tree, against trying all of them."""

from itertools import pairwise

import numpy as np
import pytest

from etips.explanation.tree_search import Cuts, Search, round_between


def splits(rows, features, cuts):
    for feature, edges in enumerate(cuts.edges):
        for edge in edges:
            for missing_low in (False, True):
                values = features[rows, feature]
                low = np.where(np.isnan(values), missing_low, values <= edge)
                yield rows[low], rows[~low]


def best_by_trial(rows, depth, features, scores, cuts, least):
    if len(rows) < least:
        return np.inf
    best = scores[rows].sum(axis=0).min()
    if depth:
        for low, high in splits(rows, features, cuts):
            more = (features, scores, cuts, least)
            best = min(
                best, best_by_trial(low, depth - 1, *more) + best_by_trial(high, depth - 1, *more)
            )
    return best


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("depth", [1, 2])
def test_two_questions_in_a_row_are_the_best_there_are(seed, depth):
    rng = np.random.default_rng(seed)
    n = 120
    features = rng.normal(size=(n, 3)).astype(np.float32)
    features[rng.random((n, 3)) < 0.1] = np.nan
    features[:, 2] = rng.integers(0, 2, n)
    scores = rng.normal(size=(n, 3))
    cuts = Cuts.of(features, bins=5)
    tree = Search(cuts, scores, np.ones(n), 8.0).grow(depth)
    found = scores[np.arange(n), tree.actions(features)].sum()
    wanted = best_by_trial(np.arange(n), depth, features, scores, cuts, 8)
    assert found == pytest.approx(wanted)
    assert min(np.bincount(tree.leaf_of(features))[list(tree.leaves)]) >= 8


def test_three_questions_find_what_only_three_can_tell():
    rng = np.random.default_rng(0)
    n = 2000
    features = rng.normal(size=(n, 4)).astype(np.float32)
    a, b, c = (features[:, :3] > 0).T
    best = np.where(a, np.where(b, 0, 1), np.where(c, 2, 3))
    scores = 1 - np.eye(4)[best] + rng.normal(size=(n, 4)) * 0.1
    tree = Search(Cuts.of(features), scores, np.ones(n), 20.0).grow(3)
    assert (tree.actions(features) == best).mean() > 0.9


def test_deeper_is_never_worse_and_noise_free_rules_come_back():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(400, 5)).astype(np.float32)
    scores = rng.normal(size=(400, 3))
    search = Search(Cuts.of(features), scores, np.ones(400), 10.0)
    worth = [
        scores[np.arange(400), search.grow(depth).actions(features)].sum() for depth in range(5)
    ]
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(worth))


def test_cuts_are_numbers_that_are_easily_said():
    assert round_between(2.0131, 2.1973) == 2.1
    assert round_between(0.0, 1.0) == 0.5
    assert round_between(64.2, 65.9) == 65
    low = float(np.float32(0.1))
    assert low <= round_between(low, np.nextafter(low, 1)) < np.nextafter(low, 1)


def test_a_column_that_never_varies_is_not_asked_for():
    features = np.zeros((50, 2), np.float32)
    cuts = Cuts.of(features)
    assert [len(edges) for edges in cuts.edges] == [0, 0]
    tree = Search(cuts, np.random.default_rng(0).normal(size=(50, 2)), np.ones(50), 5.0).grow(2)
    assert tree.leaves == (0,)
