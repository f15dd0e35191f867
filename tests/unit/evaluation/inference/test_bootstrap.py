"""Resampling whole clusters equals a plain loop, and both kinds of counts do their duty."""

import math

import numpy as np
import pytest
from evaluation_logs import sample

from etips.evaluation import difference, logged_risk, snips
from etips.evaluation.inference import bootstrap


def naive(evidence, columns, counts):
    total = counts @ columns
    half = columns.shape[1] // 2
    return (total[:half] / total[half:]) @ evidence.sign


def test_the_bootstrap_equals_a_plain_loop_over_its_counts(monkeypatch):
    loss, weight, cluster = sample()
    evidence = difference(snips(loss, weight, cluster), logged_risk(loss, cluster)).evidence
    drawn = np.random.default_rng(1).integers(0, 80, (150, 80))
    counts = np.stack([np.bincount(row, minlength=80) for row in drawn]).astype(float)
    served = iter(counts)
    monkeypatch.setattr(
        bootstrap,
        "_multinomial",
        lambda _g, rows, _k: np.stack([next(served) for _ in range(rows)]),
    )
    values, errors = bootstrap.replicate_studentised(evidence, replicates=150, seed=0)
    columns = np.hstack([evidence.numerator, evidence.denominator])
    assert values == pytest.approx([naive(evidence, columns, row) for row in counts], abs=1e-12)
    for row, error in zip(counts, errors, strict=True):
        chosen = np.repeat(np.arange(80), row.astype(int))
        above, below = evidence.numerator[chosen], evidence.denominator[chosen]
        ratio = above.sum(axis=0) / below.sum(axis=0)
        influence = ((above - ratio * below) / below.sum(axis=0)) @ evidence.sign
        assert error == pytest.approx(math.sqrt(80 / 79 * (influence**2).sum()))


def test_bootstrap_standard_deviation_agrees_with_the_standard_error():
    loss, weight, cluster = sample(k=400)
    estimate = snips(loss, weight, cluster)
    values = bootstrap.replicate_values(estimate.evidence, replicates=4000, seed=3)
    assert values.std() == pytest.approx(estimate.std_error, rel=0.06)  # 4000 draws: noise 1.1 %
    assert values.mean() == pytest.approx(estimate.risk, abs=4 * estimate.std_error / 60)


def test_poisson_counts_agree_with_multinomial_ones(monkeypatch):
    loss, weight, cluster = sample(k=400)
    evidence = snips(loss, weight, cluster).evidence
    exact = bootstrap.replicate_values(evidence, replicates=4000, seed=3)
    monkeypatch.setattr(bootstrap, "EXACT_UP_TO", 10)
    quick = bootstrap.replicate_values(evidence, replicates=4000, seed=3)
    assert quick.std() == pytest.approx(exact.std(), rel=0.06)
    assert np.quantile(quick, 0.975) == pytest.approx(np.quantile(exact, 0.975), rel=0.02)


def test_quick_counts_have_the_moments_of_poisson():
    assert bootstrap._COUNTS.size == 256
    assert bootstrap._COUNTS.mean() == 1
    assert bootstrap._COUNTS.var() == 1
    drawn = bootstrap._poisson(np.random.default_rng(0), 50, 2000)
    assert drawn.shape == (50, 2000)
    assert drawn.mean() == pytest.approx(1, abs=0.015)
    assert drawn.var() == pytest.approx(1, abs=0.03)


def test_multinomial_counts_sum_to_the_number_of_clusters():
    counts = bootstrap._multinomial(np.random.default_rng(0), 30, 17)
    assert counts.shape == (30, 17)
    assert (counts.sum(axis=1) == 17).all()
    assert counts.std() > 0.8


def test_chunks_do_not_change_the_shape_of_the_work(monkeypatch):
    evidence = snips(*sample()).evidence
    monkeypatch.setattr(bootstrap, "CELLS", 100)  # one replicate at a time
    assert np.isfinite(bootstrap.replicate_values(evidence, replicates=101, seed=0)).all()
