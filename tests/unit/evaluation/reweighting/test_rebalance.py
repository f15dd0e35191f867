import numpy as np
import pytest
from confounded_worlds import (
    KINDS,
    confounded,
    linear_logit,
    marginal,
    regressed_prognosis,
    snips_bias,
)

from etips.errors import DataError
from etips.evaluation.reweighting.rebalance import Decided, fit_correction, rebalance


def decided(world):
    return Decided(world.action, world.loss, world.x, regressed_prognosis(world))


def rebalanced(world, table, **options):
    return rebalance(table, decided(world), world.cluster, **options)


@pytest.mark.parametrize(
    ("kind", "table"),
    [(kind, marginal) for kind in KINDS] + [(kind, linear_logit) for kind in ("square", "product")],
)
def test_most_of_the_bias_of_propensities_that_miss_a_confounder_goes(kind, table):
    before, after = [], []
    for seed in range(4):
        world = confounded(kind, n_stays=800, seed=seed)
        better = rebalanced(world, table(world))
        assert better.used
        assert better.after < better.before / 2
        assert better.log_loss_after < better.log_loss
        before.append(snips_bias(world, table(world)))
        after.append(snips_bias(world, better.propensities))
    assert abs(np.mean(after)) < abs(np.mean(before)) / 3


@pytest.mark.parametrize("kind", KINDS)
def test_right_propensities_are_left_alone(kind):
    for seed in range(4):
        world = confounded(kind, n_stays=500, seed=seed)
        same = rebalanced(world, world.right)
        assert not same.used
        assert same.propensities is world.right
        assert "left as fitted" in same.sentence


def test_the_table_of_a_fold_does_not_know_what_was_done_in_it():
    world = confounded("linear", n_stays=300, seed=1)
    fold = world.cluster % 3
    own = decided(world)
    first = np.flatnonzero(fold == 0)[:20]
    other = world.action.copy()
    other[first] = (other[first] + 1) % 3
    table = marginal(world)
    moved = Decided(other, own.loss, own.features, own.prognosis)
    changed = rebalance(table, moved, world.cluster, fold=fold)
    same = rebalance(table, own, world.cluster, fold=fold)
    assert same.used
    assert changed.used
    inside = fold == 0
    assert np.array_equal(same.propensities[inside], changed.propensities[inside])
    assert not np.array_equal(same.propensities[~inside], changed.propensities[~inside])


def test_rows_sum_to_one_and_nothing_depends_on_chance():
    world = confounded("product", n_stays=400, seed=2)
    first, second = (rebalanced(world, marginal(world)) for _ in range(2))
    assert first.propensities.sum(axis=1) == pytest.approx(np.ones(len(world.x)))
    assert np.array_equal(first.propensities, second.propensities)


def test_too_few_stays_or_no_prognosis_leave_the_table():
    world = confounded("linear", n_stays=20, seed=0)
    assert not rebalanced(world, marginal(world)).used
    world = confounded("linear", n_stays=400, seed=0)
    flat = Decided(world.action, world.loss, world.x, np.full(len(world.x), 0.3))
    assert not rebalance(marginal(world), flat, world.cluster).used


def test_many_rare_actions_are_borne():
    rng = np.random.default_rng(0)
    world = confounded("linear", n_stays=500, seed=0)
    action = np.where(world.action == 0, rng.integers(0, 40, len(world.x)), 40 + world.action)
    table = np.tile((np.bincount(action, minlength=80) + 0.1) / (len(action) + 8), (len(action), 1))
    own = Decided(action, world.loss, world.x, regressed_prognosis(world))
    better = rebalance(table, own, world.cluster)
    assert better.used
    assert np.isfinite(better.propensities).all()


def test_the_sentence_tells_before_and_after():
    world = confounded("linear", n_stays=400, seed=3)
    better = rebalanced(world, marginal(world))
    assert better.sentence == (
        f"balanced: imbalance of the prognosis {better.before:.3f} before, {better.after:.3f} after"
    )


def test_a_correction_can_be_used_on_stays_that_come_later():
    early, late = (confounded("linear", n_stays=800, seed=seed) for seed in (4, 5))
    correction = fit_correction(marginal(early), decided(early))
    table = correction.apply(marginal(late), late.x, regressed_prognosis(late))
    assert abs(snips_bias(late, table)) < abs(snips_bias(late, marginal(late))) / 2


def test_what_is_no_table_is_refused():
    world = confounded("linear", n_stays=50, seed=0)
    with pytest.raises(DataError, match="propensities"):
        rebalanced(world, marginal(world) * 2)
    with pytest.raises(DataError, match="features"):
        Decided(world.action, world.loss, world.x[:-1], world.risk)
