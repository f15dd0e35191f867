"""A formula of a case becomes an estimator of plain arrays."""

import inspect

import numpy as np
import pytest

from etips.errors import DataError
from etips.evaluation import Wald
from etips.evaluation.case import Modelled, Weighted, make_case

LOSS, WEIGHT, CLUSTER = [1.0, 0.0, 1.0, 0.0], [2.0, 1.0, 0.0, 1.0], [7, 7, 9, 9]


def test_means_and_ratios_are_over_decisions_as_often_as_they_count():
    case = make_case(LOSS, WEIGHT, CLUSTER, None)
    assert case.mean(case.loss).value == 0.5
    assert case.ratio([(case.loss * case.weight, case.weight)]).value == 0.5
    assert case.ratio([(case.loss, case.weight), (case.weight, case.weight)]).value == 1.5
    often = make_case(LOSS, WEIGHT, CLUSTER, [3, 1, 1, 1])
    assert often.mean(often.loss).value == pytest.approx(4 / 6)
    assert often.sizes.tolist() == [4, 2]
    assert make_case(LOSS, None, CLUSTER, None).weight.tolist() == [1, 1, 1, 1]


def test_a_risk_lies_where_its_losses_lie():
    assert make_case(LOSS, WEIGHT, CLUSTER, None).bounds == (0, 1)
    assert make_case([1.5, 0, 1, 0], WEIGHT, CLUSTER, None).bounds is None


def test_a_formula_is_called_with_arrays_and_bears_its_own_name():
    @Weighted
    def heaviest(case):
        """The loss where the weight is largest."""
        return case.mean(np.full(case.loss.size, case.loss[case.weight.argmax()]))

    estimate = heaviest(LOSS, WEIGHT, CLUSTER, interval=Wald(0.5))
    assert (estimate.estimator, estimate.risk, estimate.n_clusters) == ("heaviest", 1.0, 2)
    assert heaviest.__doc__ == "The loss where the weight is largest."
    assert list(inspect.signature(heaviest).parameters) == [
        "loss", "weight", "cluster", "count", "interval",
    ]  # fmt: skip
    with pytest.raises(DataError, match=r"^weight: must be finite and not negative; 1 of 4 rows"):
        heaviest(LOSS, [1, -1, 0, 0], CLUSTER)


def test_a_formula_with_a_model_gets_its_predictions_checked():
    @Modelled
    def gap(case, model, model_policy):
        return case.mean(model - model_policy)

    ones = np.ones(4)
    assert gap(LOSS, WEIGHT, CLUSTER, predicted=3 * ones, predicted_policy=ones).risk == 2
    with pytest.raises(DataError, match=r"^predicted: must be finite"):
        gap(LOSS, WEIGHT, CLUSTER, predicted=ones * np.nan, predicted_policy=ones)
    with pytest.raises(DataError, match=r"^predicted_policy: must have as many rows"):
        gap(LOSS, WEIGHT, CLUSTER, predicted=ones, predicted_policy=ones[1:])
