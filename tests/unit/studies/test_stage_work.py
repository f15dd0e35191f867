"""How much work stages are: what usually comes, epoch by epoch."""

from dataclasses import replace

import pytest

from etips.learn.fitting.stages import Training
from etips.studies.stage_work import (
    AFTER,
    PASS,
    TREES,
    StageWork,
    evaluation_works,
    shortened,
    with_trees,
    work_of,
)
from etips.worlds.clinic import Clinic


def test_what_is_done_and_what_is_left_of_the_usual_epochs_is_all_of_it():
    work = StageWork((4.0, 4.0, 2.0, 2.0, 2.0), usual=4, after=3.0)
    assert work.total == 15
    for epoch in range(4):
        assert work.done(epoch) + work.left(epoch, 5) + work.after == pytest.approx(15)
    assert work.left(4, 5) == 2.0  # one more than usual may come
    assert work.left(5, 5) == 0.0
    assert work.left(2, 3) == 2.0  # of a training that has fewer


def test_a_stage_without_epochs_is_no_work():
    work = work_of("heat", [], n_folds=3)
    assert (work.total, work.at(1), work.networks) == (0.0, 0.0, 0)


def test_of_an_epoch_that_ends_early_its_share_counts():
    whole, part = (work_of("heat", [9], n_folds=5, share=share) for share in (1.0, 0.25))
    assert part.total == pytest.approx(0.25 * whole.total)
    assert part.networks == whole.networks == 45


def test_work_is_counted_in_passes_of_networks_that_read_all_folds_but_one():
    work = replace(work_of("policy", [3, 3, 1], n_folds=5), usual=3)
    assert work.epochs == pytest.approx([12 * PASS["policy"]] * 2 + [4 * PASS["policy"]])
    assert work.after == pytest.approx(AFTER["policy"] * sum(work.epochs[:2]))
    assert work.networks == 15


def test_propensities_of_many_stays_are_less_work():
    assert shortened(Training(), 100) == Training().propensity.epochs
    assert shortened(Training(), 20_000) < shortened(Training(), 6_000) < 25


def test_an_evaluation_fits_two_models_and_then_judges():
    works = evaluation_works(Training(), 10_000)
    assert list(works) == ["propensity", "outcome"]
    assert works["outcome"].after > works["propensity"].after
    assert works["outcome"].after > evaluation_works(Training(), 100_000)["outcome"].after


def test_trees_are_waited_for_where_decisions_see_one_step():
    work = work_of("propensity", [1] * 10, n_folds=5)
    row, past = (Clinic(decisions_per_stay=n).log(5, seed=0) for n in (1, 3))
    assert with_trees(work, past) == work
    assert with_trees(work, row).after == pytest.approx(work.after + TREES * work.done(work.usual))
