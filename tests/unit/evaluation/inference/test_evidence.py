"""Signed sums of ratios of cluster totals: value, influence, jackknife, paired difference."""

import math

import numpy as np
import pytest
from evaluation_logs import cases
from hypothesis import given, settings

from etips.errors import DataError
from etips.evaluation import Evidence, sndr, snips
from etips.evaluation.inference.checks import code_clusters
from etips.evaluation.inference.evidence import Gap, divide, ratio_of

ONE = np.ones(4)
CLUSTERS = code_clusters([5, 5, 9, 9], n=4)


def test_a_ratio_of_totals_by_hand():
    evidence = ratio_of(CLUSTERS, [(np.array([1.0, 2.0, 3.0, 4.0]), ONE)], bounds=(0, 9))
    assert evidence.numerator.tolist() == [[3.0], [7.0]]
    assert evidence.denominator.tolist() == [[2.0], [2.0]]
    assert (evidence.value, evidence.n_clusters, evidence.bounds) == (2.5, 2, (0, 9))
    assert evidence.influence.tolist() == [-0.5, 0.5]
    assert evidence.jackknife.tolist() == [-1.0, 1.0]  # 2.5 - 3.5 and 2.5 - 1.5
    assert evidence.std_error == 1.0
    counted = ratio_of(CLUSTERS, [(np.array([1.0, 2.0, 3.0, 4.0]), ONE)], count=2 * ONE)
    assert counted.value == 2.5
    signed = ratio_of(CLUSTERS, [(2 * ONE, ONE), (ONE, ONE)], sign=(1.0, -1.0))
    assert (signed.value, signed.std_error) == (1.0, 0.0)


@given(cases())
@settings(max_examples=100, deadline=None)
def test_influences_sum_to_zero_and_the_jackknife_is_leaving_out(case):
    evidence = snips(case.loss, case.weight, case.cluster).evidence
    assert evidence.influence.sum() == pytest.approx(0, abs=1e-9)
    for place in range(evidence.n_clusters):
        kept = np.arange(evidence.n_clusters) != place
        below = evidence.denominator[kept].sum(axis=0)
        if below[0] > 1e-9:
            left = float(evidence.values(evidence.numerator[kept].sum(axis=0), below))
            assert evidence.jackknife[place] == pytest.approx(evidence.value - left, abs=1e-6)


@given(cases())
@settings(max_examples=200, deadline=None)
def test_standard_error_is_the_jackknife_over_clusters(case):
    def left_out(estimator, cluster):
        rows = np.flatnonzero(case.cluster != cluster)
        loss, weight, model = case.loss[rows], case.weight[rows], case.take(rows)
        if estimator is snips:
            return weight @ loss / weight.sum()
        correction = weight @ (loss - model.predicted) / weight.sum()
        return model.predicted_policy.mean() + correction

    for estimator, options in ((snips, {}), (sndr, case.model)):
        found = estimator(case.loss, case.weight, case.cluster, **options).std_error
        risks = np.array([left_out(estimator, c) for c in np.unique(case.cluster)])
        k = risks.size
        expected = math.sqrt((k - 1) / k * ((risks - risks.mean()) ** 2).sum())
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-7)


def test_nothing_below_the_line_is_nan_and_a_single_carrier_has_no_finite_error():
    empty = Evidence(np.ones((2, 1)), np.zeros((2, 1)), np.ones(1), np.arange(2))
    assert math.isnan(empty.value)
    assert math.isnan(empty.std_error)
    alone = Evidence(np.array([[1.0], [0.0]]), np.array([[2.0], [0.0]]), np.ones(1), np.arange(2))
    assert (alone.value, alone.std_error) == (0.5, math.inf)
    assert np.isnan(divide(np.ones(2), np.array([0.0, 2.0]))).tolist() == [True, False]


def test_a_paired_difference_needs_the_same_clusters():
    first = ratio_of(CLUSTERS, [(2 * ONE, ONE)])
    second = ratio_of(CLUSTERS, [(ONE, ONE)])
    assert first.minus(second).value == 1.0
    other = ratio_of(code_clusters([5, 5, 8, 8], n=4), [(ONE, ONE)])
    with pytest.raises(DataError, match=r"^cluster: must be the same in both"):
        first.minus(other)


@pytest.mark.parametrize("terms", [1, 2])
def test_a_gap_is_the_paired_difference(terms):
    rng = np.random.default_rng(terms)
    above, below = rng.random((2, 40, 2 * terms)), rng.random((2, 40, 2 * terms))
    first, second = (
        Evidence(a[:, :terms], b[:, :terms], np.ones(terms), np.arange(40))
        for a, b in zip(above, below, strict=True)
    )
    gap, wanted = Gap(first, second), first.minus(second)
    assert gap.value == pytest.approx(wanted.value, rel=1e-10)
    assert gap.std_error == pytest.approx(wanted.std_error, rel=1e-12)
    assert gap.influence == pytest.approx(wanted.influence, rel=1e-10, abs=1e-15)
    assert not Gap(first, first).influence.any()


def test_a_gap_knows_no_more_than_its_two_sides():
    fine = Evidence(np.ones((3, 1)), np.ones((3, 1)), np.ones(1), np.arange(3))
    nothing = Evidence(np.zeros((3, 1)), np.zeros((3, 1)), np.ones(1), np.arange(3))
    alone = np.array([[1.0], [0.0], [0.0]])  # a single cluster carries all the weight
    assert math.isnan(Gap(fine, nothing).value)
    assert math.isnan(Gap(fine, nothing).std_error)
    carried = Evidence(alone, alone, np.ones(1), np.arange(3))
    assert Gap(fine, carried).std_error == fine.minus(carried).std_error == math.inf
