"""How much work fits are, and how long one may still take: near the truth early on."""

import subprocess
import sys

import pytest

from etips.learn.fitting.stages import Training
from etips.learn.training.epoch_report import EpochReport
from etips.studies.fit_work import (
    FitClock,
    StageWork,
    evaluation_works,
    stage_works,
)

WORKS = {
    "propensity": StageWork(1.0, usual=10, networks=2),
    "outcome": StageWork(2.0, usual=10, networks=4),
    "policy": StageWork(7.0, usual=10, networks=20),
}


def at(stage, epoch, seconds_left, epochs=10):
    return EpochReport(epoch, epochs, 0.5, 0.5, seconds_left, stage=stage)


def test_what_is_done_and_what_is_left_of_the_usual_epochs_is_all_of_it():
    work = StageWork(4.0, usual=4, after=3.0)
    assert work.total == 19
    for epoch in range(4):
        assert work.each * epoch + work.left(epoch, 5) + work.after == pytest.approx(19)
    assert work.left(4, 5) == 4.0  # one more than usual may come
    assert work.left(5, 5) == 0.0
    assert work.left(2, 3) == 4.0  # of a training that has fewer


def test_a_method_that_trains_nothing_costs_nothing():
    assert stage_works("random", {}) == {}
    plain = stage_works("etips", {"n_folds": 3, "epochs": 2, "translations": [0.5, 0.7]})
    assert list(plain) == ["propensity", "policy", "finish"]
    assert [own.networks for own in plain.values()] == [3, 6, 3]


def test_a_fit_knows_its_work_without_what_studies_import():
    code = (
        "import sys, etips.cli.fitting\n"
        "print(*{'etips.studies.fits', 'etips.results.study_result'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "\n"


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


def test_other_names_of_stages_are_known_and_unknown_ones_stand_alone():
    four = StageWork(0.4, usual=10)
    clock = FitClock({"outcome": four, "stay": four})
    assert clock.read(at("additive", 10, 0.0))[1] == pytest.approx(1 / 2)
    assert clock.read(at("stay-value-2", 10, 0.0))[1] == pytest.approx(1.0)
    assert clock.read(at("odd", 5, 3.0)) == (at("odd", 5, 3.0), 0.5)


RECORDED = (  # ICU-Sepsis, 6,000 stays, two shared cores: seconds, stage, epoch, of, left
    (1.4, "propensity", 1, 9, 5.1),
    (3.3, "propensity", 4, 9, 3.2),
    (5.3, "propensity", 7, 9, 1.3),
    (9.3, "policy", 1, 20, 12.1),
    (11.3, "policy", 4, 20, 10.4),
    (12.6, "policy", 7, 20, 7.4),
    (13.4, "policy", 10, 20, 4.7),
    (13.9, "policy", 13, 20, 2.8),
    (14.4, "policy", 16, 20, 1.4),
    (15.3, "finish", 1, 7, 4.1),
    (16.0, "finish", 2, 7, 3.4),
    (18.1, "finish", 5, 7, 1.4),
    (20.4, "finish", 7, 7, 0.0),
)
ENDED = 20.4


def test_after_a_tenth_of_the_time_the_whole_is_told_within_a_third():
    clock = FitClock(stage_works("etips", {}, n_stays=6_000))
    told = [
        (moment, moment + clock.read(at(stage, epoch, left, epochs))[0].seconds_left)
        for moment, stage, epoch, epochs, left in RECORDED
    ]
    early = [whole for moment, whole in told if moment >= 0.1 * ENDED]
    assert len(early) > 8
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
