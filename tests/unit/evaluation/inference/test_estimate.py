"""An estimate holds a value, its interval and how much evidence there is."""

import numpy as np
import pytest

from etips.evaluation import Estimate, Wald, effective_size
from etips.evaluation.inference.checks import code_clusters
from etips.evaluation.inference.evidence import ratio_of

CLUSTERS = code_clusters([0, 0, 1, 2], n=4)
LOSS = np.array([1.0, 0.0, 1.0, 0.0])


def test_an_estimate_is_the_value_of_its_evidence_with_an_interval_around_it():
    weight = np.array([1.0, 1.0, 2.0, 0.0])
    evidence = ratio_of(CLUSTERS, [(LOSS * weight, weight)])
    estimate = Estimate.of("own", evidence, weight=weight, count=None, interval=Wald(0.8))
    assert (estimate.estimator, estimate.risk) == ("own", 0.75)
    assert (estimate.low, estimate.high) == Wald(0.8)(evidence)
    assert estimate.std_error == evidence.std_error > 0
    assert (estimate.n_decisions, estimate.n_clusters) == (4, 3)
    assert estimate.effective_n == pytest.approx(16 / 6)
    assert estimate.tuning is None
    assert "evidence" not in repr(estimate)


def test_effective_size_of_equal_weights_is_their_number():
    assert effective_size(np.full(7, 0.3)) == pytest.approx(7)
    assert effective_size(np.array([1.0, 0.0, 0.0])) == 1
    assert effective_size(np.zeros(3)) == 0


def test_effective_size_with_counts_is_that_of_repetition():
    weight, count = np.array([1.0, 2.0, 3.0]), np.array([2.0, 1.0, 3.0])
    repeated = np.repeat(weight, count.astype(int))
    assert effective_size(weight, count=count) == pytest.approx(effective_size(repeated))
