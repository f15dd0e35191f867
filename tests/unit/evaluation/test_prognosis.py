"""The prognosis: learned elsewhere, told from what was visible, by action where that matters."""

import numpy as np
import pytest

from etips.evaluation.inference.checks import code_clusters
from etips.evaluation.prognosis import Prognosis, cross_fit, cross_fit_plain


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


def test_one_fitted_to_all_rows_tells_the_prognosis_of_others():
    rows, action, _, loss = world("product", seed=1)
    later, _, truth, _ = world("product", seed=2)
    plain, by_action = Prognosis.fit(rows, loss, action, 3).predict(later)
    assert np.corrcoef(plain, truth)[0, 1] > 0.85
    assert by_action.shape == (len(later), 3)


def test_the_plain_prognosis_alone_is_the_same_but_for_its_spread():
    rows, action, _, loss = world("product")
    clusters = code_clusters(np.arange(loss.size) // 2, n=loss.size)
    both = cross_fit(rows, loss, clusters, action, 3).plain
    alone = cross_fit_plain(rows, loss, clusters)
    assert alone.mean() == pytest.approx(loss.mean(), abs=1e-9)
    ratio = (alone - alone.mean()) / (both - both.mean())
    assert ratio == pytest.approx(ratio[0], rel=1e-9)
    assert ratio[0] == pytest.approx(1, abs=0.1)
