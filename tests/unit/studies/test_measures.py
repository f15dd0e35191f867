"""Figures of a fold, their mean over folds, and groups too small to show."""

from dataclasses import replace

import numpy as np
import pytest
from small_worlds import CLINIC

from etips.evaluation.log import Log
from etips.policies.deployed import Deployed, take_likeliest
from etips.results.followed_policies import Followed
from etips.results.study_result import Measures
from etips.studies.measures import (
    Spread,
    measure_policy,
    over_folds,
    show_groups,
)

PLAIN = Measures(0.5, 1.0, 0.4, 0.4, 0.4, -0.1, 30, 70, None, None)


@pytest.fixture(scope="module")
def clinic():
    stays = CLINIC.log(100, seed=0)
    return Log.of(stays, predicted=np.full((stays.n_decisions, stays.n_actions), 0.5)), stays


def test_a_policy_is_measured_by_its_formulas(clinic):
    log, stays = clinic
    policy = np.tile([0.5, 0.3, 0.2], (stays.n_decisions, 1))
    found = measure_policy(log, stays, policy)
    weight = policy[log.rows, log.action] / log.propensity
    assert found.matching_factor == pytest.approx(weight.mean())
    assert found.ips == pytest.approx((weight * log.loss).mean())
    assert found.snips == pytest.approx(found.ips / found.matching_factor)
    assert found.dr == pytest.approx((0.5 + weight * (log.loss - 0.5)).mean())
    matched = log.action == 0
    assert (found.n_matched, found.n_unmatched) == (matched.sum(), (~matched).sum())
    assert found.atenp == pytest.approx(log.loss[matched].mean() - log.loss[~matched].mean())
    assert found.risk == pytest.approx((policy * stays.true_expected_loss()).sum(axis=1).mean())
    assert found.drawn_risk == found.risk


def test_what_a_policy_does_is_measured_and_what_it_would_draw_stands_beside(clinic):
    log, stays = clinic
    chances = np.tile([0.5, 0.3, 0.2], (stays.n_decisions, 1))
    away = np.arange(stays.n_decisions) % 2 == 0
    sure = take_likeliest(chances, away)
    found = measure_policy(log, stays, Followed(sure, Deployed(chances, away)))
    weight = np.where(away, 1.0, (log.action == 0) / log.propensity)
    assert found.matching_factor == pytest.approx(weight.mean())
    assert found.ips == pytest.approx((weight * log.loss).mean())
    expected, clinicians = stays.true_expected_loss(), stays.true_logging()
    left = (clinicians * expected).sum(axis=1)
    assert found.risk == pytest.approx(np.where(away, left, expected[:, 0]).mean())
    drawn = (chances * expected).sum(axis=1)
    assert found.drawn_risk == pytest.approx(np.where(away, left, drawn).mean())


def test_a_policy_that_draws_is_measured_by_what_it_drew(clinic):
    log, stays = clinic
    uniform = np.full((stays.n_decisions, 3), 1 / 3)
    drawn = np.arange(stays.n_decisions) % 3
    found = measure_policy(log, stays, uniform, answers=drawn)
    assert found.n_matched == (log.action == drawn).sum()
    expected = stays.true_expected_loss()[log.rows, drawn].mean()
    assert found.accuracy == pytest.approx(1 - expected)


def test_without_truth_there_is_no_accuracy(clinic):
    log, stays = clinic
    found = measure_policy(log, replace(stays, truth=None), np.full((stays.n_decisions, 3), 1 / 3))
    assert (found.accuracy, found.risk, found.drawn_risk) == (None, None, None)


def test_the_spread_over_folds_is_the_sample_standard_deviation():
    folds = [replace(PLAIN, accuracy=value) for value in (0.2, 0.4, 0.6)]
    found = over_folds(folds, lambda fold: fold.accuracy)
    assert (found.mean, found.deviation) == pytest.approx((0.4, 0.2))
    assert found.show() == "0.400 ± 0.200"
    assert over_folds(folds[:1], lambda fold: fold.accuracy).show() == "0.200"
    assert over_folds(folds, lambda fold: fold.risk).show() == "-"


def test_a_fold_without_the_figure_does_not_count():
    folds = [replace(PLAIN, atenp=None), replace(PLAIN, atenp=-0.2)]
    assert over_folds(folds, lambda fold: fold.atenp).mean == -0.2


def test_a_mean_that_rounds_to_nothing_has_no_sign():
    assert Spread(-0.0001, 0.01).show() == "0.000 ± 0.010"


def test_a_group_under_eleven_hides_both_sizes(clinic):
    log, stays = clinic
    few = np.where(np.arange(stays.n_decisions) < 5, log.action, (log.action + 1) % 3)
    found = measure_policy(log, stays, np.eye(3)[few])
    assert (found.n_matched, found.n_unmatched) == (None, None)
    assert show_groups([PLAIN, found]) == "one under 11"
    none = measure_policy(log, stays, np.eye(3)[(log.action + 1) % 3])
    assert (none.n_matched, none.n_unmatched) == (0, stays.n_decisions)
    assert show_groups([none]) == f"0 / {stays.n_decisions}"
