"""Resampling whole clusters, many replicates at a time, as a product of two matrices."""

import numpy as np

from etips.evaluation.inference.checks import Floats
from etips.evaluation.inference.evidence import Evidence, divide

CELLS = 250_000  # counts held at once: 2 MB of them stay in cache; more is slower, not faster
ROWS = 16  # replicates at once, where there are too many clusters to hold all of them
EXACT_UP_TO = 15_000  # clusters; beyond, Poisson counts differ from multinomial ones by 1/k


def replicate_sums(columns: Floats, *, replicates: int, seed: int) -> Floats:
    """Totals of `columns` (k, m) over clusters drawn with replacement, shape (replicates, m).

    Up to `EXACT_UP_TO` clusters the counts are Efron's multinomial. Beyond, each cluster has its
    own Poisson(1) count: k of them are drawn in expectation only, which cancels in a ratio, and the
    draw is several times as fast and can go through the clusters block by block.
    """
    k = columns.shape[0]
    generator = np.random.default_rng(seed)
    exact = k <= EXACT_UP_TO
    rows = max(1 if exact else ROWS, CELLS // k)
    block = k if exact else max(1, CELLS // rows)
    draw = _multinomial if exact else _poisson
    columns = np.asfortranarray(columns)
    sums = np.zeros((replicates, columns.shape[1]))
    for start in range(0, replicates, rows):
        part = sums[start : start + rows]
        for first in range(0, k, block):
            totals = columns[first : first + block]
            part += draw(generator, part.shape[0], totals.shape[0]) @ totals
    return sums


def replicate_values(evidence: Evidence, *, replicates: int, seed: int) -> Floats:
    """The quantity itself, denominators resampled too, in every replicate; NaN where undefined."""
    terms = evidence.sign.size
    columns = np.hstack([evidence.numerator, evidence.denominator])
    sums = replicate_sums(columns, replicates=replicates, seed=seed)
    return evidence.values(sums[:, :terms], sums[:, terms:])


def replicate_studentised(
    evidence: Evidence, *, replicates: int, seed: int
) -> tuple[Floats, Floats]:
    """The quantity and its standard error in every replicate, shape (replicates,) each.

    The squared error is a quadratic form in the totals and the totals of their products, so it
    needs no second pass over the clusters.
    """
    terms = evidence.sign.size
    width = 2 * terms
    ratio = divide(evidence.numerator.sum(axis=0), evidence.denominator.sum(axis=0))
    centred = (
        evidence.numerator - ratio * evidence.denominator
    )  # else small errors drown in rounding
    columns = np.hstack([centred, evidence.denominator])
    first, second = np.triu_indices(width)
    sums = replicate_sums(
        np.hstack([columns, columns[:, first] * columns[:, second]]),
        replicates=replicates,
        seed=seed,
    )
    above, below = sums[:, :terms], sums[:, terms:width]
    gradient = np.hstack([divide(evidence.sign, below), divide(-evidence.sign * above, below**2)])
    pair = gradient[:, first] * gradient[:, second] * np.where(first == second, 1.0, 2.0)
    k = evidence.n_clusters
    squared = k / (k - 1) * np.maximum((pair * sums[:, width:]).sum(axis=1), 0)
    return evidence.value + evidence.values(above, below), np.sqrt(squared)


def _multinomial(generator: np.random.Generator, rows: int, k: int) -> Floats:
    drawn = generator.integers(0, k, size=(rows, k))
    drawn += np.arange(rows)[:, None] * k
    return np.bincount(drawn.ravel(), minlength=rows * k).reshape(rows, k).astype(np.float64)


def _poisson(generator: np.random.Generator, rows: int, k: int) -> Floats:
    """Counts that are close to Poisson(1), one random byte each."""
    drawn = np.frombuffer(generator.bytes(rows * k), dtype=np.uint8).reshape(rows, k)
    return np.take(_COUNTS, drawn)


# Of 256 equally likely bytes, so many stand for 0, 1, .. 5: Poisson(1) rounded to 1/256 so that
# mean and variance are exactly 1; the third moment is 4.98 instead of 5.
_COUNTS = np.repeat(np.arange(6.0), (94, 95, 46, 16, 4, 1))
