"""The time left is of the whole fit, not of the stage at work."""

import pytest

from etips.learn.training.epoch_report import EpochReport
from etips.studies.fit_clock import FitClock
from etips.studies.plan import StagePasses, stage_passes

PASSES = StagePasses(
    {"propensity": 10.0, "pilot": 20.0, "policy": 70.0},
    {"propensity": 2, "pilot": 4, "policy": 20},
)


def at(stage, epoch, seconds_left):
    return EpochReport(epoch, 10, 0.5, 0.5, seconds_left, stage=stage)


def test_the_stages_to_come_count_at_the_pace_of_the_one_at_work():
    clock = FitClock(PASSES)
    report, share = clock.read(at("propensity", 5, 1.0))  # 5 passes in a second
    assert report.seconds_left == pytest.approx(1.0 + 90 / 5)
    assert share == pytest.approx(0.05)
    report, share = clock.read(at("propensity", 10, 0.0))  # at its end the pace is remembered
    assert report.seconds_left == pytest.approx(90 / 5)
    report, share = clock.read(at("policy", 5, 35.0))  # the pilots were not needed
    assert report.seconds_left == pytest.approx(35.0)
    assert share == pytest.approx(0.65)


def test_parts_of_a_stage_are_parts_of_its_cost():
    clock = FitClock(PASSES)
    report, share = clock.read(at("policy-0-10", 5, 10.0))
    assert report.seconds_left == pytest.approx(10.0 + 20.0)
    assert share == pytest.approx(0.3 + 0.7 * 0.25)


def test_other_names_of_stages_are_known_and_unknown_ones_stand_alone():
    clock = FitClock(StagePasses({"outcome": 4.0, "stay": 4.0}, {}))
    assert clock.read(at("additive", 10, 0.0))[1] == pytest.approx(0.5)
    assert clock.read(at("stay-value-2", 10, 0.0))[1] == pytest.approx(1.0)
    assert clock.read(at("odd", 5, 3.0)) == (at("odd", 5, 3.0), 0.5)


def test_a_method_that_trains_nothing_costs_nothing():
    assert stage_passes("random", {}).costs == {}
    plain = stage_passes("etips", {"n_folds": 3, "epochs": 2, "translations": [0.5, 0.7]})
    assert plain.costs == {"propensity": 4.0, "pilot": 8.0, "policy": 8.0}
    assert plain.networks == {"propensity": 3, "pilot": 6, "policy": 6}
