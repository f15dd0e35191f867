"""Figures of one place among the patients of another."""

import numpy as np
import pytest
from two_sites import TwoSites, prognosis_of, seen, severe

from etips.evaluation.comparing.transport import (
    density_ratio,
    discrimination,
    match_case_mix,
    tell_apart,
    tilt,
    transported,
    unlike_features,
)
from etips.evaluation.inference.checks import code_clusters


def carry(world, n, seed):
    log, site, x = world.draw(n, seed)
    mix = match_case_mix(x, prognosis_of(log, x, severe), ~site, site, log)
    part = log.take(~site)
    policy = transported("snips", part, seen(part, x[~site], severe), mix)
    return mix, policy, transported("snips", part, None, mix)


@pytest.fixture(scope="module")
def carried():
    world = TwoSites(shift=0.8)
    return world, *carry(world, 4000, 2)


def test_with_the_others_patients_the_figure_is_the_others(carried):
    world, _, policy, clinicians = carried
    here, there = world.truth(severe, False), world.truth(severe, True)
    assert there - here > 0.1
    assert policy.low <= there <= policy.high
    assert abs(policy.risk - there) < 0.25 * (there - here)
    assert clinicians.low <= world.truth(None, True) <= clinicians.high
    assert policy.high < 1
    assert not policy.low <= here <= policy.high


def test_what_is_not_in_the_patients_is_not_carried_over():
    world = TwoSites(shift=0.5, effect=1.5)
    _, policy, _ = carry(world, 4000, 4)
    without = TwoSites(shift=0.5).truth(severe, True)
    assert policy.low <= without <= policy.high
    assert policy.high < world.truth(severe, True)


def test_the_prognosis_is_brought_into_balance(carried):
    _, mix, _, _ = carried
    assert mix.prognosis_before > 0.05
    assert abs(mix.prognosis_after) < 0.1 * mix.prognosis_before
    assert mix.overlap in ("good", "fair")
    assert mix.count.mean() == pytest.approx(1)


def test_places_that_are_alike_lose_next_to_nothing():
    mix, _, _ = carry(TwoSites(shift=0.0), 1500, 5)
    assert mix.overlap == "good"
    assert mix.effective_share > 0.9
    assert mix.unreached == 0


def test_where_few_are_alike_overlap_is_poor():
    mix, _, _ = carry(TwoSites(shift=2.5), 1500, 6)
    assert mix.overlap == "poor"
    assert mix.unreached > 0.2


def test_a_tilt_gets_the_mean_and_gives_up_where_it_would_take_too_much():
    rng = np.random.default_rng(0)
    functions = rng.normal(size=(500, 2))
    count = tilt(np.ones(500), functions, np.array([0.2, -0.1]))
    assert count @ functions / count.sum() == pytest.approx([0.2, -0.1], abs=1e-4)
    assert (tilt(np.ones(500), functions, np.array([9.0, 0.0])) == 1).all()


def test_only_features_that_differ_beyond_chance_are_balanced_and_few_of_them():
    rng = np.random.default_rng(0)
    inside = np.arange(400) % 2 == 0
    x = rng.normal(size=(400, 30))
    x[inside, 3] += 1.0
    x[::7, 4] = np.nan
    clusters = code_clusters(np.arange(400), n=400)
    table = unlike_features(x, inside, clusters)
    assert table.shape[1] <= 200 // 30
    assert np.corrcoef(table[:, 0], x[:, 3])[0, 1] > 0.99
    assert unlike_features(x[:20], inside[:20], code_clusters(np.arange(20), n=20)).shape[1] == 0


def draw(n, shift, seed=0, *, square=False):
    rng = np.random.default_rng(seed)
    inside = rng.random(n) < 0.4
    x = rng.normal(size=(n, 5))
    if square:
        x[inside, 0] *= 1.0 + shift
    else:
        x[inside, 0] += shift
    return x, inside, code_clusters(np.arange(n), n=n)


def test_places_that_are_alike_are_given_the_same_chance():
    x, inside, clusters = draw(1500, 0.0)
    chance = tell_apart(x, inside, clusters)
    assert chance.std() < 0.06
    assert chance.mean() == pytest.approx(inside.mean(), abs=1e-6)


@pytest.mark.parametrize("square", [False, True])
def test_the_ratio_is_near_the_true_one_for_a_shift_and_for_a_spread(square):
    x, inside, clusters = draw(4000, 1.0, square=square)
    ratio = density_ratio(tell_apart(x, inside, clusters), inside)
    own = x[:, 0]
    true = np.exp(-(own**2) / 8 + own**2 / 2) / 2 if square else np.exp(own - 0.5)
    usual = np.abs(own) < 1.5
    assert np.abs(np.log(ratio) - np.log(true))[usual].mean() < 0.3
    assert ratio[~inside].mean() == pytest.approx(1, abs=0.15)


def test_gaps_tell_places_apart_too():
    x, inside, clusters = draw(1500, 0.0)
    x[inside & (np.arange(1500) % 2 == 0), 3] = np.nan
    assert discrimination(tell_apart(x, inside, clusters), inside) > 0.7


def test_a_patient_is_not_known_again():
    """Rows of one patient repeat each other: whoever saw one would know the other's place."""
    rng = np.random.default_rng(1)
    own = rng.normal(size=(150, 4))
    x, inside = np.repeat(own, 6, axis=0), np.repeat(rng.random(150) < 0.5, 6)
    chance = tell_apart(x, inside, code_clusters(np.repeat(np.arange(150), 6), n=900))
    assert discrimination(chance, inside) < 0.62


def test_discrimination_counts_pairs_and_halves_equals():
    inside = np.array([False, True, False, True])
    assert discrimination(np.array([0.1, 0.9, 0.2, 0.8]), inside) == 1.0
    assert discrimination(np.array([0.5, 0.5, 0.5, 0.5]), inside) == 0.5
    assert discrimination(np.array([0.9, 0.1, 0.8, 0.1]), inside) == 0.0
