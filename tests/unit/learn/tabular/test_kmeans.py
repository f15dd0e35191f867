"""k-means."""

import numpy as np
import pytest

from etips.learn.tabular.kmeans import assign, find_centres


def clouds(n=600, seed=0):
    rng = np.random.default_rng(seed)
    centres = np.array([[0, 0], [8, 0], [0, 8]])
    return (centres[rng.integers(0, 3, n)] + rng.normal(size=(n, 2))).astype(np.float32), centres


def test_it_finds_clouds_that_lie_apart():
    rows, centres = clouds()
    found = find_centres(rows, 3, seed=0)
    nearest = assign(centres, found)
    assert sorted(nearest) == [0, 1, 2]
    assert found[nearest] == pytest.approx(centres, abs=0.3)


def test_few_distinct_rows_are_the_centres_themselves():
    rows = np.tile(np.array([[1, 2], [3, 4], [0, 0]], np.float32), (20, 1))
    found = find_centres(rows, 5, seed=0)
    assert found.tolist() == [[1, 2], [3, 4], [0, 0]]
    assert (assign(rows, found) == np.tile([0, 1, 2], 20)).all()


def test_the_seed_decides_and_rows_without_columns_are_one_group():
    rows, _ = clouds()
    first, again = (find_centres(rows, 10, seed=1) for _ in range(2))
    assert (first == again).all()
    assert find_centres(np.zeros((7, 0), np.float32), 3, seed=0).shape == (1, 0)


def test_more_centres_lie_closer():
    rows, _ = clouds()
    far, near = (
        ((rows - c[assign(rows, c)]) ** 2).sum()
        for c in (find_centres(rows, k, seed=0) for k in (3, 30))
    )
    assert near < far / 3
