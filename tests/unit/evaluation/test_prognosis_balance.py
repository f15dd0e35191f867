"""Weighted against plain means of the prognosis."""

from dataclasses import replace

import numpy as np
import pytest
from evaluation_logs import make_log

from etips.evaluation import sndr, snips, view
from etips.evaluation.prognosis_balance import MOST_WIDENED, balance_prognosis


def visible_log(**more):
    log, table, feature = make_log(n_stays=200, **more)
    loss = (np.random.default_rng(1).random(log.n_decisions) < 1 / (1 + np.exp(-feature))) * 1.0
    return replace(log, loss=loss, features=feature[:, None]), table


def test_the_difference_by_hand_and_its_error_by_leaving_out_each_stay():
    log, table = visible_log(full=False)
    policy = view(log, table)
    found = balance_prognosis(log, policy, snips(log.loss, policy.weight, log.clusters), 0.1)
    weight, expected = policy.weight, log.prognosis

    def shift(keep):
        mean = weight[keep] @ expected[keep] / weight[keep].sum()
        return mean - expected[keep].mean()

    everyone = np.ones(log.n_decisions, dtype=bool)
    assert found.plain.difference == pytest.approx(shift(everyone))
    left_out = np.array([shift(log.cluster != stay) for stay in range(200)])
    error = np.sqrt(199 / 200 * ((left_out - left_out.mean()) ** 2).sum())
    assert found.plain.std_error == pytest.approx(error)
    assert found.plain.z == pytest.approx(found.plain.difference / error)
    assert found.plain.half_width_share == pytest.approx(abs(found.plain.difference) / 0.1)


def test_by_action_the_policys_own_mean_is_what_weights_should_reach():
    log, table = visible_log()
    policy = view(log, table)
    found = balance_prognosis(log, policy, snips(log.loss, policy.weight, log.clusters), 0.1)
    expected = log.expected.by_action
    own = expected[log.rows, log.action]
    shift = policy.weight @ own / policy.weight.sum() - (table * expected).sum(axis=1).mean()
    assert found.by_action.difference == pytest.approx(shift, abs=1e-6)
    assert found.rest is None


def test_a_headline_with_predicted_losses_is_held_to_what_they_leave():
    log, table = visible_log()
    policy = view(log, table)
    headline = sndr(
        log.loss, policy.weight, log.clusters, policy.predicted, policy.predicted_policy
    )
    found = balance_prognosis(log, policy, headline, 0.1)
    left = log.expected_residual.plain
    shift = policy.weight @ left / policy.weight.sum() - left.mean()
    assert found.rest.difference == pytest.approx(shift, abs=1e-9)
    assert found.rest_by_action is not None


def test_where_the_clinicians_decide_nothing_is_out_of_balance():
    log, table = visible_log()
    policy = view(log, table, np.ones(log.n_decisions, dtype=bool))
    found = balance_prognosis(log, policy, snips(log.loss, policy.weight, log.clusters), 0.1)
    for part in (found.plain, found.by_action):
        assert (part.difference, part.z, part.half_width_share) == (0, 0, 0)


def test_without_features_or_weight_there_is_nothing_to_compare():
    log, table = visible_log()
    policy = view(log, table)
    headline = snips(log.loss, policy.weight, log.clusters)
    bare = replace(log, features=None)
    assert bare.prognosis is None
    assert bare.expected_residual is None
    assert balance_prognosis(bare, policy, headline, 0.1) is None
    assert balance_prognosis(log, policy, headline, float("nan")) is None
    nothing = replace(policy, weight=np.zeros(log.n_decisions))
    assert balance_prognosis(log, nothing, headline, 0.1) is None


def test_part_of_a_log_keeps_the_prognosis_of_the_whole():
    log, _ = visible_log()
    keep = log.cluster < 40
    part = log.take(keep)
    assert (part.prognosis == log.prognosis[keep]).all()
    assert (part.expected_residual.plain == log.expected_residual.plain[keep]).all()
    assert replace(part, features=None).prognosis is None


def test_with_all_propensities_the_error_is_what_they_lead_to_expect_if_that_is_more():
    heavy, table = visible_log()
    bare = replace(heavy, propensities=None)
    errors = {}
    for name, log in (("heavy", heavy), ("bare", bare)):
        policy = view(log, table)
        headline = snips(log.loss, policy.weight, log.clusters)
        errors[name] = balance_prognosis(log, policy, headline, 0.1).plain.std_error
    assert errors["heavy"] == pytest.approx(MOST_WIDENED * errors["bare"])
    flat = replace(heavy, propensity=np.full(600, 0.25), propensities=np.full((600, 4), 0.25))
    policy = view(flat, np.tile([0.3, 0.2, 0.3, 0.2], (600, 1)))
    headline = snips(flat.loss, policy.weight, flat.clusters)
    bare = replace(flat, propensities=None)
    found, plain = (balance_prognosis(o, policy, headline, 0.1).plain for o in (flat, bare))
    assert found.std_error == pytest.approx(plain.std_error, rel=0.1)
