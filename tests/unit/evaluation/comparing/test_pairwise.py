"""Policies in pairs."""

import numpy as np
import pytest
from two_sites import TwoSites, always, never, seen, severe

from etips.errors import SettingError
from etips.evaluation.comparing.pairwise import compare_pairs, join_verdicts, judge_difference
from etips.evaluation.inference.contrast import difference
from etips.evaluation.log import Log, view
from etips.evaluation.risk import logged_risk, snips
from etips.evaluation.verdict import Verdict

WORLDS = 40


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


def test_the_difference_covers_and_is_seldom_shown_where_there_is_none():
    """Two constant policies of a drug that does nothing, and another that draws: three pairs."""
    covered, any_shown = 0, 0
    for seed in range(WORLDS):
        rng = np.random.default_rng(seed)
        n = 400
        loss = (rng.random(n) < 0.3).astype(float)
        action = rng.integers(0, 2, n)
        log = Log(loss=loss, action=action, propensity=np.full(n, 0.5), cluster=np.arange(n) // 2,
                  n_actions=2)  # fmt: skip
        tables = {"one": [0.0, 1.0], "none": [1.0, 0.0], "mostly": [0.2, 0.8]}
        risks = {
            name: snips(loss, view(log, np.tile(table, (n, 1))).weight, log.clusters)
            for name, table in tables.items()
        }
        pairs = compare_pairs(risks)
        covered += pairs[0].contrast.low <= 0 <= pairs[0].contrast.high
        any_shown += any(pair.differs for pair in pairs)
    assert covered >= 0.9 * WORLDS
    assert any_shown <= 0.1 * WORLDS


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
