"""The time left is of the whole fit, not of the stage at work, and is near the truth early on."""

import pytest

from etips.learn.fitting.stages import Training
from etips.learn.training.epoch_report import EpochReport
from etips.studies.fit_clock import FitClock
from etips.studies.method_work import stage_works
from etips.studies.stage_work import StageWork, evaluation_works

WORKS = {
    "propensity": StageWork((1.0,) * 10, usual=10, networks=2),
    "outcome": StageWork((2.0,) * 10, usual=10, networks=4),
    "policy": StageWork((7.0,) * 10, usual=10, networks=20),
}


def at(stage, epoch, seconds_left, epochs=10):
    return EpochReport(epoch, epochs, 0.5, 0.5, seconds_left, stage=stage)


def test_the_stages_to_come_count_at_the_pace_of_the_one_at_work():
    clock = FitClock(WORKS)
    report, share = clock.read(at("propensity", 5, 1.0))  # 5 passes in a second
    assert report.seconds_left == pytest.approx(1.0 + 90 / 5)
    assert share == pytest.approx(0.05)
    report, share = clock.read(at("propensity", 10, 0.0))  # at its end the pace is remembered
    assert report.seconds_left == pytest.approx(90 / 5)
    report, share = clock.read(at("policy", 5, 35.0))  # predicted losses were not needed
    assert report.seconds_left == pytest.approx(35.0)
    assert share == pytest.approx(0.65)


def test_parts_of_a_stage_are_parts_of_its_work():
    clock = FitClock(WORKS)
    report, share = clock.read(at("policy-0-10", 5, 10.0))
    assert report.seconds_left == pytest.approx(10.0 + 20.0)
    assert share == pytest.approx(0.3 + 0.7 * 0.25)


def test_what_follows_a_stage_is_still_to_come_at_its_end():
    clock = FitClock({"propensity": StageWork((1.0,) * 4, usual=2, after=3.0)})
    report, share = clock.read(at("propensity", 1, 3.0, epochs=4))
    assert report.seconds_left == pytest.approx(4.0)  # it usually stops after two
    assert share == pytest.approx(1 / 5)
    report, _ = clock.read(at("propensity", 4, 0.0, epochs=4))
    assert report.seconds_left == pytest.approx(3.0)


def test_other_names_of_stages_are_known_and_unknown_ones_stand_alone():
    four = StageWork((0.4,) * 10, usual=10)
    clock = FitClock({"outcome": four, "stay": four})
    assert clock.read(at("additive", 10, 0.0))[1] == pytest.approx(1 / 2)
    assert clock.read(at("stay-value-2", 10, 0.0))[1] == pytest.approx(1.0)
    assert clock.read(at("odd", 5, 3.0)) == (at("odd", 5, 3.0), 0.5)


RECORDED = (  # ICU-Sepsis, 6,000 stays, two cores: seconds, stage, epoch, of how many, seconds left
    (0.8, "propensity", 1, 9, 3.7),
    (1.2, "propensity", 2, 9, 3.2),
    (1.6, "propensity", 3, 9, 2.7),
    (2.1, "propensity", 4, 9, 2.2),
    (2.5, "propensity", 5, 9, 1.8),
    (2.9, "propensity", 6, 9, 1.3),
    (3.4, "propensity", 7, 9, 0.9),
    (3.8, "propensity", 8, 9, 0.4),
    (4.2, "propensity", 9, 9, 0.0),
    (8.7, "heat", 1, 1, 0.0),
    (10.1, "policy", 1, 20, 8.0),
    (10.5, "policy", 2, 20, 7.3),
    (10.9, "policy", 3, 20, 6.7),
    (11.3, "policy", 4, 20, 6.3),
    (11.7, "policy", 5, 20, 5.8),
    (12.0, "policy", 6, 20, 5.3),
    (12.3, "policy", 7, 20, 4.8),
    (12.5, "policy", 8, 20, 4.2),
    (12.7, "policy", 9, 20, 3.6),
    (13.5, "finish", 1, 6, 2.2),
    (13.9, "finish", 2, 6, 1.7),
    (14.2, "finish", 3, 6, 1.2),
    (14.6, "finish", 4, 6, 0.8),
    (15.0, "finish", 5, 6, 0.4),
    (15.4, "finish", 6, 6, 0.0),
)
ENDED = 15.7


def test_after_a_tenth_of_the_time_the_whole_is_told_within_a_third():
    clock = FitClock(stage_works("etips", {}, n_stays=6_000))
    told = [
        (moment, moment + clock.read(at(stage, epoch, left, epochs))[0].seconds_left)
        for moment, stage, epoch, epochs, left in RECORDED
    ]
    early = [whole for moment, whole in told if moment >= 0.1 * ENDED]
    assert len(early) > 20
    assert all(2 / 3 * ENDED <= whole <= 4 / 3 * ENDED for whole in early)


def test_the_share_that_is_done_never_falls_and_is_near_the_truth():
    clock = FitClock(stage_works("etips", {}, n_stays=6_000))
    shares = [clock.read(at(*line[1:3], line[4], line[3]))[1] for line in RECORDED]
    assert shares == sorted(shares)
    gaps = [abs(share - line[0] / ENDED) for share, line in zip(shares, RECORDED, strict=True)]
    assert max(gaps) < 0.2


EVALUATION = (  # the same of an evaluation on 2,000 stays, 15,700 decisions
    (1.79, "propensity", 4, 25, 9.26),
    (3.56, "propensity", 8, 25, 7.52),
    (5.31, "propensity", 12, 25, 5.72),
    (7.06, "propensity", 16, 25, 3.96),
    (8.72, "propensity", 20, 25, 2.17),
    (10.53, "propensity", 24, 25, 0.44),
    (11.06, "propensity", 25, 25, 0.0),
    (13.49, "outcome", 4, 20, 8.06),
    (14.83, "outcome", 8, 20, 5.03),
    (16.03, "outcome", 12, 20, 3.04),
    (16.96, "outcome", 16, 20, 1.37),
    (17.74, "outcome", 20, 20, 0.0),
)


def test_of_an_evaluation_too():
    clock = FitClock(evaluation_works(Training(), 15_700))
    for moment, stage, epoch, epochs, left in EVALUATION:
        whole = moment + clock.read(at(stage, epoch, left, epochs))[0].seconds_left
        assert moment < 3.5 or 2 / 3 * 35.2 <= whole <= 4 / 3 * 35.2


def test_a_translation_that_is_called_back_is_the_last_of_a_fit():
    clock = FitClock(stage_works("etips", {}, n_stays=6_000))
    assert clock.read(at("policy-back-3", 1, 7.0, 20)) == (at("policy-back-3", 1, 7.0, 20), 0.95)
