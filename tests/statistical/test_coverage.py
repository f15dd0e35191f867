"""S3 to S6, S10 and hidden confounding, on simulated wards with known truth.

The small versions run with every change; marker `statistical` runs those of the goals, whose
figures are in docs/method/coverage.md. All seeds are fixed: a failure is a change of the code, not
bad luck.
"""

import numpy as np
import pytest

from benchmarks.ward_coverage import (
    FITTED,
    GOOD,
    HARD,
    tally_bias,
    tally_confounded,
    tally_null,
    tally_robust,
    tally_snips,
)
from etips.evaluation import Wald


def name(configuration):
    settings, n_stays = configuration
    return "-".join(f"{key}={value}" for key, value in settings.items()) + f"-{n_stays}"


def overlap_is_good(tally):
    return tally.max_weight <= 20 and tally.effective_share >= 0.3


@pytest.mark.parametrize("configuration", GOOD, ids=name)
def test_the_default_interval_covers_where_overlap_is_good_s3(configuration):
    tally = tally_snips(*configuration, worlds=300)  # noise 1.3 points
    assert overlap_is_good(tally)
    assert 0.91 <= tally.hits["default"] <= 0.99


@pytest.mark.statistical
@pytest.mark.parametrize("configuration", GOOD, ids=name)
def test_the_default_interval_covers_93_to_97_over_2000_worlds_s3(configuration):
    tally = tally_snips(*configuration, worlds=2000)  # noise 0.5 points
    assert overlap_is_good(tally)
    assert 0.93 <= tally.hits["default"] <= 0.97


def test_the_symmetric_interval_would_fail_s3():
    """So that the test above is known to be able to fail."""
    tally = tally_snips({"risk": 0.05}, 200, worlds=300, intervals={"Wald": Wald()})
    assert tally.hits["Wald"] < 0.91


def honest(worlds, *, full, slack):
    runs, covered = 0.0, 0.0
    for configuration in HARD:
        tally = tally_snips(*configuration, worlds=worlds, full=full)
        if tally.hits["default"] < 0.9 - slack:
            assert tally.reliable <= 0.05 + slack, name(configuration)
        runs += tally.reliable
        covered += tally.reliable * np.nan_to_num(tally.covered_reliable)
    assert runs > 0.5  # a verdict that is never reliable is honest, and of no use
    return covered / runs


@pytest.mark.parametrize("full", [True, False], ids=["all actions", "logged only"])
def test_the_verdict_is_honest_where_overlap_is_poor_s4(full):
    assert honest(60, full=full, slack=0.05) >= 0.91  # about 150 reliable runs: noise 2 points


@pytest.mark.statistical
@pytest.mark.parametrize("full", [True, False], ids=["all actions", "logged only"])
def test_the_verdict_is_honest_over_1000_worlds_s4(full):
    assert honest(1000, full=full, slack=0.0) >= 0.93


def test_most_good_logs_with_enough_events_are_called_reliable_s4():
    tally = tally_snips({"risk": 0.5}, 1000, worlds=100)
    assert tally.reliable >= 0.9


@pytest.mark.parametrize("configuration", FITTED[4:6], ids=name)
def test_ips_and_dr_are_unbiased_and_dr_survives_cross_fitting_s5(configuration):
    tally = tally_bias(*configuration, worlds=150)
    for estimator in ("ips", "dr"):
        assert abs(tally[estimator].bias) <= 3 * tally[estimator].noise
    crossfit = tally["dr_crossfit"]
    assert abs(crossfit.bias) <= 0.005 + 2 * crossfit.noise
    assert 0.90 <= crossfit.coverage <= 0.99


@pytest.mark.statistical
@pytest.mark.parametrize("configuration", FITTED, ids=name)
def test_ips_and_dr_are_unbiased_over_500_worlds_s5(configuration):
    tally = tally_bias(*configuration, worlds=500)
    for estimator in ("ips", "dr"):
        assert abs(tally[estimator].bias) <= 3 * tally[estimator].noise
    assert abs(tally["dr_crossfit"].bias) <= 0.005
    assert 0.93 <= tally["dr_crossfit"].coverage <= 0.97


def test_dr_needs_one_of_its_models_and_the_verdict_notices_when_it_has_neither_s6():
    tally = tally_robust(worlds=200, judged=40)
    for kept in ("outcome", "propensity"):
        assert abs(tally[kept][0]) <= 0.01, kept
    assert abs(tally["both"][0]) > 0.05  # the noise is real
    assert tally["both"][1] >= 0.95


def test_no_policy_is_called_better_in_a_world_without_effects_s10():
    for below, tested in tally_null(worlds=200).values():
        assert below <= 0.05
        assert tested <= 0.09  # one-sided at 5 %: noise 1.5 points


@pytest.mark.statistical
def test_no_policy_is_called_better_over_2000_worlds_s10():
    for below, tested in tally_null(worlds=2000).values():
        assert below <= 0.05
        assert tested <= 0.06


def test_sensitivity_bounds_hold_the_truth_under_confounding_and_the_plain_interval_does_not():
    plain, bounded, _ = tally_confounded(worlds=200)
    assert bounded >= 0.95
    assert plain < 0.6
