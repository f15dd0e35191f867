"""Do places differ?"""

import numpy as np
import pytest

from etips.evaluation.comparing.heterogeneity import hold_alike, spread_over, subtract
from etips.evaluation.inference.intervals import Wald
from etips.evaluation.risk import logged_risk

WORLDS = 60


def places(rates, n, seed, *, shared=0):
    """What was done in places of n stays each; the first `shared` stays are in all of them."""
    rng = np.random.default_rng(seed)
    parts = []
    for number, rate in enumerate(rates):
        cluster = np.arange(n) + n * number
        cluster[:shared] = np.arange(shared)
        parts.append(logged_risk((rng.random(n) < rate).astype(float), cluster).evidence)
    return parts


def test_q_is_cochrans_where_places_share_nobody():
    parts = places([0.2, 0.4, 0.3], 400, 0)
    found = hold_alike(parts, interval=Wald())
    values = np.array([own.value for own in parts])
    # Wald's limits use Student's t, a little wider than the normal that they are turned back with.
    weight = np.array([1 / own.std_error**2 for own in parts])
    pooled = (weight * values).sum() / weight.sum()
    assert found.q == pytest.approx((weight * (values - pooled) ** 2).sum(), rel=0.01)
    assert found.freedom == 2
    assert found.pooled == pytest.approx(pooled, rel=0.01)
    assert found.p_value < 0.001
    assert 0 < found.i_squared < 1


@pytest.mark.parametrize(("n", "rate"), [(40, 0.3), (200, 0.05), (400, 0.3)])
def test_places_that_are_alike_are_seldom_called_different(n, rate):
    found = [hold_alike(places([rate] * 4, n, seed)) for seed in range(WORLDS)]
    false = sum(own is not None and own.p_value <= 0.05 for own in found)
    assert false <= 7  # of 60; 5 % are 3, and 7 is beyond the 98th percentile


def test_a_place_without_any_event_is_not_sure():
    few = logged_risk(np.zeros(20), np.arange(20)).evidence
    many = places([0.1], 200, 3)[0]
    assert hold_alike([few, many]).p_value > 0.05


def test_people_seen_in_every_place_count_once():
    apart, together = (places([0.3, 0.3], 200, 5, shared=s) for s in (0, 150))
    same = [together[0], together[0]]
    assert hold_alike(apart) is not None
    found = hold_alike([places([0.3], 200, 1)[0], same[0]])
    assert found.q >= 0
    assert subtract(*same).std_error == pytest.approx(0.0, abs=1e-12)


def test_one_place_or_nothing_but_rounding_is_no_question():
    assert hold_alike(places([0.3], 50, 0)) is None
    flat = logged_risk(np.full(30, 2.0), np.arange(30)).evidence
    assert hold_alike([flat, flat], interval=Wald()) is None


def test_a_difference_of_two_places_has_the_error_of_both():
    first, second = places([0.2, 0.5], 300, 7)
    apart = subtract(first, second)
    assert apart.value == pytest.approx(first.value - second.value)
    assert apart.std_error == pytest.approx(np.hypot(first.std_error, second.std_error), rel=0.01)
    wide = spread_over(first, np.union1d(first.clusters, second.clusters))
    assert wide.value == first.value
    assert wide.n_clusters == 600
