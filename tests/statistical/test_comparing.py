"""Paired differences cover, differences that are none are seldom shown, figures carry over.

The figures are in docs/method/comparing.md.
"""

import numpy as np
import pytest
from two_sites import TwoSites, always, never, prognosis_of, seen, severe

from etips.evaluation.comparing.pairwise import compare_pairs, hold_alike
from etips.evaluation.comparing.transport import match_case_mix, transported
from etips.evaluation.inference.estimate import difference
from etips.evaluation.log import Log, view
from etips.evaluation.risk import logged_risk, snips

pytestmark = pytest.mark.statistical


@pytest.mark.parametrize(("n", "per_stay"), [(300, 1), (300, 3), (1500, 1)])
def test_a_paired_difference_covers_the_true_one(n, per_stay):
    worlds = 400  # binomial noise 1.1 points
    world = TwoSites(shift=0.0, per_stay=per_stay)
    true = world.truth(severe, False) - world.truth(always, False)
    covered = 0
    for seed in range(worlds):
        log, _, x = world.draw(n, seed)
        first, second = (
            snips(log.loss, seen(log, x, own).weight, log.clusters) for own in (severe, always)
        )
        found = difference(first, second)
        covered += found.low <= true <= found.high
    assert 0.925 <= covered / worlds <= 0.985, covered / worlds


@pytest.mark.parametrize("rate", [0.3, 0.03])
def test_any_difference_among_five_policies_of_drugs_that_do_nothing_is_shown_once_in_twenty(rate):
    worlds, n, n_actions = 600, 800, 4  # binomial noise 0.9 points
    shown = 0
    for seed in range(worlds):
        rng = np.random.default_rng(seed)
        loss = (rng.random(n) < rate).astype(float)
        action = rng.integers(0, n_actions, n)
        log = Log(loss=loss, action=action, propensity=np.full(n, 1 / n_actions),
                  cluster=np.arange(n) // 2, n_actions=n_actions)  # fmt: skip
        tables = [np.eye(n_actions)[k] for k in range(n_actions)]
        risks = {
            f"{number}": snips(loss, view(log, np.tile(own, (n, 1))).weight, log.clusters)
            for number, own in enumerate(tables)
        }
        risks["clinicians"] = logged_risk(loss, log.clusters)
        shown += any(pair.differs for pair in compare_pairs(risks))
    assert shown / worlds <= 0.07, shown / worlds


@pytest.mark.parametrize(("n", "rate"), [(60, 0.3), (400, 0.3), (400, 0.02)])
def test_places_that_are_alike_are_called_different_once_in_twenty(n, rate):
    worlds, false = 600, 0
    for seed in range(worlds):
        rng = np.random.default_rng(seed)
        parts = [
            logged_risk((rng.random(n) < rate).astype(float), np.arange(n)).evidence
            for _ in range(5)
        ]
        found = hold_alike(parts)
        false += found is not None and found.p_value <= 0.05
    assert false / worlds <= 0.07, false / worlds


@pytest.mark.parametrize(("n", "shift"), [(600, 0.5), (2000, 0.8)])
def test_a_figure_with_the_others_patients_is_the_others(n, shift):
    worlds = 100  # binomial noise 2.2 points
    world = TwoSites(shift=shift)
    truths = {own: world.truth(own, True) for own in (severe, never)}
    done = world.truth(None, True)
    covered, risks = dict.fromkeys((severe, never, None), 0), []
    for seed in range(worlds):
        log, site, x = world.draw(n, seed)
        mix = match_case_mix(x, prognosis_of(log, x, severe, never), ~site, site, log)
        part = log.take(~site)
        for own, true in truths.items():
            found = transported("snips", part, seen(part, x[~site], own), mix)
            covered[own] += found.low <= true <= found.high
            if own is severe:
                risks.append(found.risk)
        found = transported("snips", part, None, mix)
        covered[None] += found.low <= done <= found.high
    assert min(covered.values()) / worlds >= 0.89, covered
    assert abs(np.mean(risks) - truths[severe]) < 0.2 * (
        truths[severe] - world.truth(severe, False)
    )
