"""How much likelier patients like these are in one place than in another.

A classifier that tells two places apart by what was visible gives the ratio of their densities: the
odds of the one place, over how many it has. It is fitted without the patient it is asked about.
"""

from dataclasses import dataclass

import numpy as np

from etips.evaluation.boosted_trees import Bins, Boosting, Codes, Trees, fit_trees
from etips.evaluation.inference.checks import Bools, Clusters, Floats, Ints, Rows

N_FOLDS = 5
MOST_FIT = 20_000  # rows that one fit sees
WIDEST = 150  # columns of the straight line: those in which the places differ most
PENALTY = 5.0  # rows' worth of zero on each slope
N_STEPS = 12  # of Newton's method; the penalty keeps it from running away
N_TREES = 40
ONE_TREE = Boosting(n_trees=1, shrinkage=0.1)
REACH = 4.0  # standard deviations beyond which a value is as good as that
LEAST_CHANCE = 1e-3


def tell_apart(features: Rows, inside: Bools, clusters: Clusters) -> Floats:
    """Chance that each row is from the second place, by a model that never saw its patient, (n,).

    A logistic regression, then boosted trees on what it leaves. Both are shrunk until what they say
    of patients they have not seen is right: places that are alike are given the same chance
    everywhere.

    Args:
        features: What was visible, NaN where missing, shape (n, d).
        inside: Whether a row is from the second place, shape (n,).
        clusters: The patient of each row.
    """
    target = inside.astype(np.float64)
    fold = np.random.default_rng(0).permutation(clusters.size)[clusters.code] % N_FOLDS
    logit = np.zeros(target.size)
    for held in range(N_FOLDS):
        learn, ask = np.flatnonzero(fold != held), np.flatnonzero(fold == held)
        if ask.size == 0 or np.unique(target[learn]).size < 2:
            continue
        learn = _some(learn, MOST_FIT)
        model = _Classifier.fit(features[learn], target[learn], seed=held)
        logit[ask] = model.logit(features[ask])
    return _recalibrated(logit, target)


def density_ratio(chance: Floats, inside: Bools) -> Floats:
    """Density of the second place over that of the first, shape (n,).

    Args:
        chance: As `tell_apart` gives it, shape (n,).
        inside: Whether a row is from the second place, shape (n,).
    """
    kept = np.clip(chance, LEAST_CHANCE, 1 - LEAST_CHANCE)
    return np.asarray(kept / (1 - kept) * ((~inside).sum() / max(inside.sum(), 1)))


def discrimination(chance: Floats, inside: Bools) -> float:
    """Share of pairs, one of each place, that the chance puts in order: 0.5 where none differ."""
    order = np.argsort(chance, kind="stable")
    rank = np.empty(chance.size)
    values, first, count = np.unique(chance[order], return_index=True, return_counts=True)
    rank[order] = np.repeat(first + (count - 1) / 2, count)  # among equals the middle
    del values
    n_in, n_out = int(inside.sum()), int((~inside).sum())
    return float((rank[inside].sum() - n_in * (n_in - 1) / 2) / (n_in * n_out))


@dataclass(frozen=True)
class _Classifier:
    """A fitted model of which place a row is from."""

    centre: Floats
    spread: Floats
    gaps: Ints  # columns with a gap
    kept: Ints  # columns of the straight line
    slope: Floats
    bins: Bins
    trees: tuple[tuple[float, Trees], ...]

    @classmethod
    def fit(cls, rows: Rows, target: Floats, *, seed: int) -> "_Classifier":
        known = ~np.isnan(rows)
        count = np.maximum(known.sum(axis=0), 1)
        filled = np.where(known, rows, 0.0)
        centre = filled.sum(axis=0) / count
        spread = np.sqrt(np.where(known, (filled - centre) ** 2, 0.0).sum(axis=0) / count)
        gaps = np.flatnonzero(~known.all(axis=0))
        table = _table(rows, centre, spread, gaps)
        apart = np.abs((target - target.mean()) @ table)
        kept = np.sort(np.argsort(-apart, kind="stable")[:WIDEST])
        slope = _logistic(_with_one(table[:, kept]), target, PENALTY)
        bins = Bins.of(rows)
        logit = _with_one(table[:, kept]) @ slope
        trees = _boost(bins.code(rows), target, logit, seed)
        return cls(centre, spread, gaps, kept, slope, bins, trees)

    def logit(self, rows: Rows) -> Floats:
        table = _table(rows, self.centre, self.spread, self.gaps)
        logit: Floats = _with_one(table[:, self.kept]) @ self.slope
        codes = self.bins.code(rows)
        for scale, tree in self.trees:
            logit = logit + scale * tree.predict(codes)
        return logit


def _table(rows: Rows, centre: Floats, spread: Floats, gaps: Ints) -> Floats:
    """Values in standard deviations, gaps and constants at 0, and where the gaps are."""
    flat = spread < 1e-9 * (1 + np.abs(centre))
    scaled = (rows - centre) / np.where(flat, 1.0, spread)
    scaled = np.clip(np.where(np.isnan(scaled) | flat, 0.0, scaled), -REACH, REACH)
    return np.hstack([scaled, np.isnan(rows[:, gaps])])


def _boost(
    codes: Codes, target: Floats, logit: Floats, seed: int
) -> tuple[tuple[float, Trees], ...]:
    trees = []
    if codes.shape[1] == 0:
        return ()
    for number in range(N_TREES):
        chance = _expit(logit)
        tree = fit_trees(codes, target - chance, seed=1000 * seed + number, settings=ONE_TREE)
        scale = 1 / max(float((chance * (1 - chance)).mean()), 0.05)  # a step of Newton's, about
        logit = logit + scale * tree.predict(codes)
        trees.append((scale, tree))
    return tuple(trees)


def _recalibrated(logit: Floats, target: Floats) -> Floats:
    """The chance with a slope at most 1 and a level that fit patients the model has not seen."""
    spread = float(logit.std())
    if spread < 1e-9:
        return np.full(target.size, target.mean())
    centred = (logit - logit.mean()) / spread
    slope = _logistic(_with_one(centred[:, None]), target, 1e-3)
    slope[1] = np.clip(slope[1], 0.0, spread)
    level = _level(slope[1] * centred, float(target.mean()))
    return _expit(slope[1] * centred + level)


def _level(logit: Floats, share: float) -> float:
    """What to add to logits so that the mean chance is the share."""
    low, high = -40.0, 40.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _expit(logit + middle).mean() < share else (low, middle)
    return (low + high) / 2


def _logistic(table: Floats, target: Floats, penalty: float) -> Floats:
    """Slopes of a ridge logistic regression; the first column holds ones and has no penalty."""
    slope = np.zeros(table.shape[1])
    share = np.clip(target.mean(), LEAST_CHANCE, 1 - LEAST_CHANCE)
    slope[0] = np.log(share / (1 - share))
    ridge = np.full(slope.size, penalty)
    ridge[0] = 0.0
    for _ in range(N_STEPS):
        chance = _expit(table @ slope)
        weight = np.maximum(chance * (1 - chance), 1e-4)
        curve = (table * weight[:, None]).T @ table + np.diag(ridge + 1e-9)
        step = np.linalg.solve(curve, table.T @ (target - chance) - ridge * slope)
        slope = slope + step * min(1.0, 4 / max(float(np.abs(step).max()), 1e-12))
        if np.abs(step).max() < 1e-6:
            break
    return slope


def _with_one(table: Floats) -> Floats:
    return np.hstack([np.ones((len(table), 1)), table])


def _expit(logit: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(logit, -35, 35))))


def _some(rows: Ints, most: int) -> Ints:
    if rows.size <= most:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
