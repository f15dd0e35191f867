"""Which place is a patient from?"""

import numpy as np
import pytest

from etips.evaluation.comparing.case_mix import density_ratio, discrimination, tell_apart
from etips.evaluation.inference.checks import code_clusters


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
