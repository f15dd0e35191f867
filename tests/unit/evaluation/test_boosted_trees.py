"""Boosted trees: thresholds, products, gaps, and the same answer every time."""

import numpy as np
import pytest

from etips.evaluation import boosted_trees
from etips.evaluation.boosted_trees import N_BINS, NO_SPLIT, Bins, Boosting, fit_trees


def fitted(rows, target, **settings):
    bins = Bins.of(rows)
    codes = bins.code(rows)
    return fit_trees(codes, target, seed=0, settings=Boosting(**settings)), bins


def test_bins_hold_about_as_many_rows_each_and_gaps_have_their_own():
    column = np.random.default_rng(0).lognormal(size=5000)
    rows = np.stack([column, np.where(column > 2, np.nan, column), np.ones(5000)], axis=1)
    codes = Bins.of(rows).code(rows)
    counts = np.bincount(codes[:, 0], minlength=N_BINS)
    assert counts[0] == 0
    assert counts[1:].min() > 100
    assert ((codes[:, 1] == 0) == (column > 2)).all()
    assert np.unique(codes[:, 2]).size == 1
    assert (np.diff(codes[np.argsort(column), 0].astype(int)) >= 0).all()


def test_two_levels_stay_two_bins():
    rows = (np.random.default_rng(1).random((400, 1)) < 0.03).astype(float)
    assert np.unique(Bins.of(rows).code(rows)).size == 2


@pytest.mark.parametrize("shape", ["step", "product", "missing"])
def test_what_a_line_cannot_follow_is_followed(shape):
    generator = np.random.default_rng(2)
    rows = generator.normal(size=(4000, 4))
    target = {
        "step": (rows[:, 0] > 0.5) * 1.0,
        "product": np.sign(rows[:, 0]) * np.sign(rows[:, 1] + 0.2),
        "missing": (rows[:, 2] > 0) * 1.0,
    }[shape]
    if shape == "missing":
        rows[rows[:, 2] > 0, 2] = np.nan
    trees, bins = fitted(rows[:3000], target[:3000])
    found = trees.predict(bins.code(rows[3000:]))
    assert np.corrcoef(found, target[3000:])[0, 1] > 0.9


def test_noise_is_shrunk_and_constants_split_nothing():
    generator = np.random.default_rng(3)
    rows, noise = generator.normal(size=(3000, 5)), generator.normal(size=3000)
    trees, bins = fitted(rows[:2000], noise[:2000])
    assert trees.predict(bins.code(rows[2000:])).std() < 0.3
    flat, bins = fitted(np.ones((100, 2)), generator.normal(size=100))
    assert (flat.cut == NO_SPLIT).all()
    assert np.ptp(flat.predict(bins.code(np.ones((5, 2))))) == 0


def test_the_same_rows_give_the_same_trees_and_wide_tables_are_sampled():
    generator = np.random.default_rng(4)
    rows, target = generator.normal(size=(500, 60)), generator.normal(size=500)
    first, _ = fitted(rows, target, n_trees=5, tree_rows=200)
    again, _ = fitted(rows, target, n_trees=5, tree_rows=200)
    assert (first.value == again.value).all()
    assert first.column.max() < 60


def test_of_columns_that_are_alike_the_first_is_asked_whatever_the_rounding():
    """Sums differ in their last digits from one number of cores to another."""
    rng = np.random.default_rng(0)
    levels = rng.integers(0, 8, (500, 3)).astype(float)
    rows = np.column_stack([levels, 7 - levels, levels**2])
    target = levels[:, 0] * levels[:, 1] + rng.normal(size=500)
    codes = Bins.of(rows).code(rows)
    plain = fit_trees(codes, target, seed=0)
    for seed in range(5):
        noise = 1e-14 * np.random.default_rng(seed).normal(size=500)
        other = fit_trees(codes, target + noise, seed=0)
        assert np.array_equal(other.column, plain.column)
        assert np.array_equal(other.cut, plain.cut)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_codes_are_what_a_search_among_the_cuts_finds(kind, monkeypatch):
    monkeypatch.setattr(boosted_trees, "BLOCK", 37)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 4)).astype(kind)
    rows[:, 1] = rng.integers(0, 3, 200)  # few values
    rows[:, 2] = 7  # one
    rows[rng.random((200, 4)) < 0.1] = np.nan
    rows[0], rows[1] = np.inf, -np.inf
    bins = Bins.of(rows)
    for asked in (rows, rows.astype(np.float64), np.nextafter(rows, kind(9))):
        codes = bins.code(asked)
        for number, column in enumerate(asked.T):
            below = np.searchsorted(bins.cuts[number], column.astype(np.float64), side="left")
            assert np.array_equal(codes[:, number], np.where(np.isnan(column), 0, below + 1))


def gappy(kind, n=300):
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(n, 5)).astype(kind)
    rows[:, 1] = rng.integers(0, 3, n)  # few values
    rows[:, 2] = 7  # one
    rows[rng.random((n, 5)) < 0.2] = np.nan
    rows[:, 4] = np.nan  # none
    rows[0, :3], rows[1, :3] = np.inf, -np.inf
    return rows


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_cuts_are_the_quantiles_of_what_is_known(kind):
    rows, shares = gappy(kind), np.linspace(0, 1, N_BINS)[1:-1]
    for cuts, column in zip(Bins.of(rows).cuts, rows.T, strict=True):
        known = column[~np.isnan(column)]
        own = np.unique(np.quantile(known, shares, method="lower")) if known.size else known
        own = own[own < known.max(initial=-np.inf)]
        assert np.array_equal(cuts[: own.size], own)
        assert np.isinf(cuts[own.size :]).all()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_values_go_where_their_bins_go(kind, monkeypatch):
    monkeypatch.setattr(boosted_trees, "BLOCK", 37)
    rows = gappy(kind)
    target = np.where(np.isnan(rows[:, 0]), 2.0, np.sign(rows[:, 3]) * np.sign(rows[:, 1] - 1))
    trees, bins = fitted(rows, np.nan_to_num(target), least_rows=2)
    assert (trees.cut == 0).any()  # a split by whether a value is known
    assert (trees.cut == NO_SPLIT).any()
    for asked in (rows, rows.astype(np.float64), np.nextafter(rows, kind(9)), rows[:0]):
        assert np.array_equal(trees.predict_rows(asked, bins), trees.predict(bins.code(asked)))


def test_trees_without_a_split_predict_the_mean_from_rows_too():
    trees, bins = fitted(np.ones((50, 2)), np.arange(50.0))
    assert trees.asked.size == 0
    rows = np.ones((5, 2))
    assert trees.predict_rows(rows, bins) == pytest.approx(trees.predict(bins.code(rows)))
