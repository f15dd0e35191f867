"""Policies in pairs, and whether places differ."""

import numpy as np
import pytest
from two_sites import TwoSites, always, never, seen, severe

from etips.errors import SettingError
from etips.evaluation.comparing.pairwise import (
    compare_pairs,
    hold_alike,
    subtract,
)
from etips.evaluation.inference.estimate import difference
from etips.evaluation.inference.intervals import Wald
from etips.evaluation.log import Log
from etips.evaluation.risk import logged_risk, snips
from etips.evaluation.verdict import Verdict, join_verdicts, judge_difference


def estimates(log, x, **policies):
    found = {name: snips(log.loss, seen(log, x, own).weight, log.clusters)
             for name, own in policies.items()}  # fmt: skip
    return {**found, "clinicians": logged_risk(log.loss, log.clusters)}


@pytest.fixture(scope="module")
def found():
    log, _, x = TwoSites(per_stay=2).draw(600, 1)
    return log, estimates(log, x, severe=severe, always=always, never=never)


def test_a_pair_is_the_paired_difference_and_its_p_the_intervals_own(found):
    _, risks = found
    pairs = compare_pairs(risks)
    assert [(p.first, p.second) for p in pairs[:3]] == [
        ("severe", "always"),
        ("severe", "never"),
        ("severe", "clinicians"),
    ]
    for pair in pairs:
        own = difference(risks[pair.first], risks[pair.second])
        assert pair.contrast.difference == own.difference
        assert (pair.p_value <= 0.05) == (own.low > 0 or own.high < 0)
        assert pair.adjusted_p >= pair.p_value


def test_a_reference_asks_less_and_is_corrected_for_less(found):
    _, risks = found
    every = {(p.first, p.second): p for p in compare_pairs(risks)}
    some = compare_pairs(risks, reference="clinicians")
    assert len(some) == 3
    assert all(p.adjusted_p <= every[p.first, p.second].adjusted_p for p in some)
    with pytest.raises(SettingError, match="reference: must be one of severe"):
        compare_pairs(risks, reference="nobody")


def test_a_policy_does_not_differ_from_itself(found):
    log, _ = found
    risk = logged_risk(log.loss, log.clusters)
    (pair,) = compare_pairs({"a": risk, "b": risk})
    assert (pair.contrast.difference, pair.p_value, pair.differs) == (0.0, 1.0, False)


def test_one_risk_is_no_pair(found):
    with pytest.raises(SettingError, match="two at least"):
        compare_pairs({"a": found[1]["severe"]})


def test_a_difference_is_no_better_than_its_worse_part():
    parts = {"a": Verdict("reliable", ()), "b": Verdict("doubtful", ("Few.",))}
    joined = join_verdicts(parts)
    assert joined.label == "doubtful"
    assert joined.reasons == ("The risk of b is doubtful.",)
    assert join_verdicts(parts, Verdict("unusable", ("Unlike.",))).label == "unusable"


def test_patients_that_speak_for_one_and_not_the_other_are_told():
    """Frequencies in place of propensities: who got the drug was sicker, whatever it does."""
    log, _, x = TwoSites(shift=0).draw(3000, 2)
    fine = seen(log, x, always), seen(log, x, never)
    contrast = difference(*[snips(log.loss, v.weight, log.clusters) for v in fine])
    assert judge_difference(log, *fine, contrast, "snips").label == "reliable"
    share = log.action.mean()
    blind = Log(loss=log.loss, action=log.action, cluster=log.cluster, n_actions=2,
                propensity=np.where(log.action == 1, share, 1 - share), features=x)  # fmt: skip
    wrong = seen(blind, x, always), seen(blind, x, never)
    contrast = difference(*[snips(blind.loss, v.weight, blind.clusters) for v in wrong])
    verdict = judge_difference(blind, *wrong, contrast, "snips")
    assert verdict.label in ("doubtful", "unusable")
    assert "unlike" in verdict.reasons[0]


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
    assert apart.n_clusters == 600
