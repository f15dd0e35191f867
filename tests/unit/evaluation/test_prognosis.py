"""What a loss could be expected to be, by which models, and whether weighting moves it."""

from dataclasses import replace

import numpy as np
import pytest
from evaluation_logs import make_log

from etips.evaluation import sndr, snips, view
from etips.evaluation.diagnostics import MOST_WIDENED, balance_prognosis
from etips.evaluation.inference.checks import code_clusters
from etips.evaluation.prognosis import (
    MOST_PRODUCTS,
    cross_fit,
    find_products,
)
from etips.evaluation.row_models import REACH, Units, fit_ridge, fit_trees


def world(kind, n=3000, seed=0):
    generator = np.random.default_rng([17, seed])
    rows = generator.normal(size=(n, 6))
    action = generator.integers(0, 3, n)
    score = {
        "line": rows[:, 0],
        "product": rows[:, 0] * rows[:, 1],
        "square": rows[:, 2] ** 2 - 1,
        "by action": np.array([1.0, -1.0, 0.0])[action] * rows[:, 0],
        "nothing": np.zeros(n),
    }[kind]
    truth = 1 / (1 + np.exp(-1.2 * score))
    return rows, action, truth, (generator.random(n) < truth).astype(float)


def fit(rows, target, action, cluster=None):
    clusters = code_clusters(np.arange(target.size) if cluster is None else cluster, n=target.size)
    return cross_fit(rows, target, clusters, action, 3)


@pytest.mark.parametrize("kind", ["line", "product", "square"])
def test_lines_squares_and_products_are_found(kind):
    rows, action, truth, loss = world(kind)
    found = fit(rows, loss, action)
    assert np.corrcoef(found.plain, truth)[0, 1] > 0.85
    assert found.plain.mean() == pytest.approx(loss.mean(), abs=1e-6)


def test_a_product_is_found_among_sixty_columns():
    rows, action, truth, loss = world("product")
    more = np.random.default_rng(9).normal(size=(3000, 54))
    assert np.corrcoef(fit(np.hstack([rows, more]), loss, action).plain, truth)[0, 1] > 0.7


def test_what_an_action_does_to_some_and_not_to_others_is_found():
    rows, action, truth, loss = world("by action")
    found = fit(rows, loss, action)
    own = found.by_action[np.arange(3000), action]
    assert np.corrcoef(own, truth)[0, 1] > 0.8
    assert abs(np.corrcoef(found.by_action[:, 0], rows[:, 0])[0, 1]) > 0.8
    assert found.by_action.dtype == np.float32


def test_noise_has_hardly_a_prognosis():
    rows, action, _, loss = world("nothing")
    assert fit(rows, loss, action).plain.std() < 0.05


def test_nobody_is_foretold_from_their_own_outcome():
    """Two decisions of each patient, alike to the last digit, with one outcome of pure chance."""
    generator = np.random.default_rng(3)
    rows = np.repeat(generator.normal(size=(400, 2)), 2, axis=0)
    loss = np.repeat((generator.random(400) < 0.5).astype(float), 2)
    action = generator.integers(0, 3, 800)
    honest = fit(rows, loss, action, cluster=np.repeat(np.arange(400), 2))
    assert np.corrcoef(honest.plain, loss)[0, 1] < 0.2


def test_gaps_constants_and_rare_actions_are_borne():
    rows, action, truth, loss = world("line")
    rows[::3, 1] = np.nan
    rows[:, 3] = 7.0
    rows[:, 4] = np.nan
    action[:] = 0
    action[:3] = 1
    found = fit(rows.astype(np.float32), loss, action)
    assert np.isfinite(found.plain).all()
    assert np.isfinite(found.by_action).all()
    assert np.corrcoef(found.plain, truth)[0, 1] > 0.8
    assert np.isfinite(fit(np.ones((30, 1)), loss[:30], action[:30]).plain).all()
    assert np.isfinite(fit(np.ones((30, 0)), loss[:30], action[:30]).plain).all()


def test_a_part_keeps_what_the_whole_leads_to_expect():
    rows, action, _, loss = world("line", n=300)
    found, keep = fit(rows, loss, action), np.arange(300) < 50
    assert (found.take(keep).plain == found.plain[:50]).all()
    assert (found.take(keep).by_action == found.by_action[:50]).all()


def test_a_log_of_very_many_decisions_is_learned_from_a_sample():
    generator = np.random.default_rng(5)
    rows = generator.normal(size=(60_000, 3)).astype(np.float32)
    loss = rows[:, 0] + generator.normal(size=60_000)
    found = fit(rows, loss, np.zeros(60_000, int), cluster=np.arange(60_000) // 4)
    assert np.corrcoef(found.plain, rows[:, 0])[0, 1] > 0.97


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


def draw(n=1500, width=6, seed=0):
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(n, width))


@pytest.mark.parametrize("names", [(0, 3), (1, 2, 4)])
def test_a_product_of_two_or_three_features_is_found(names):
    rng, rows = draw()
    truth = np.sign(rows[:, list(names)]).prod(axis=1)
    found = find_products(rows, truth + 2 * rng.normal(size=len(rows)))
    later = np.random.default_rng(1).normal(size=(400, 6))
    values = found.of(later)
    told = [
        np.corrcoef(value, np.sign(later[:, list(names)]).prod(axis=1))[0, 1] for value in values.T
    ]
    assert max(np.abs(told)) > 0.7


def test_noise_has_next_to_no_products():
    counts = []
    for seed in range(20):
        rng, rows = draw(n=600, seed=seed)
        counts.append(find_products(rows, rng.normal(size=600)).factors.shape[0])
    assert np.mean(counts) < 0.5
    assert max(counts) <= MOST_PRODUCTS


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_gaps_and_columns_that_say_nothing_are_zero_and_tails_are_cut(kind):
    rows = (3 + np.random.default_rng(0).normal(size=(500, 4))).astype(kind)
    rows[::9, 1] = np.nan
    rows[:, 2], rows[:, 3] = 7.0, np.nan
    rows[0, 0] = 1e6
    scaled = Units.of(rows).standardised(rows)
    assert (scaled[:, 2:] == 0).all()
    assert (scaled[::9, 1] == 0).all()
    assert scaled[0, 0] == REACH
    known = rows[~np.isnan(rows[:, 1]), 1].astype(np.float64)
    expected = (known - known.mean()) / known.std()
    np.testing.assert_allclose(scaled[~np.isnan(rows[:, 1]), 1], expected, atol=1e-5)


@pytest.mark.parametrize("shape", ["step", "product", "missing"])
def test_trees_follow_what_a_line_cannot(shape):
    generator = np.random.default_rng(2)
    rows = generator.normal(size=(4000, 4))
    target = {
        "step": (rows[:, 0] > 0.5) * 1.0,
        "product": np.sign(rows[:, 0]) * np.sign(rows[:, 1] + 0.2),
        "missing": (rows[:, 2] > 0) * 1.0,
    }[shape]
    if shape == "missing":
        rows[rows[:, 2] > 0, 2] = np.nan
    found = fit_trees(rows[:3000], target[:3000])(rows[3000:])
    assert np.corrcoef(found, target[3000:])[0, 1] > 0.9


def test_many_columns_of_noise_are_shrunk_and_a_few_that_tell_are_kept():
    generator = np.random.default_rng(0)
    rows, later = generator.normal(size=(2, 300, 100))
    noise = generator.normal(size=300)
    assert (later @ fit_ridge(rows, noise)[1]).std() < 0.5
    base, slope = fit_ridge(rows, 2 * rows[:, 7] + 1 + 0.1 * noise)
    assert np.corrcoef(base + later @ slope, later[:, 7])[0, 1] > 0.95
