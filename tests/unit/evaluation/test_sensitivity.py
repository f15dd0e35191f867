"""What hidden confounding and missing losses could do."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from evaluation_logs import make_log
from hidden_worlds import hidden_state
from missing_worlds import make_missing
from sklearn.linear_model import LogisticRegression

from etips.errors import DataError, SettingError
from etips.evaluation import Log, Wald, bound_risk, difference, logged_risk, snips, view
from etips.evaluation.censoring import LossModel, complete_losses, model_losses
from etips.evaluation.row_models import Units
from etips.evaluation.sensitivity import (
    PENALTY,
    Extremes,
    benchmark_features,
    bound_missing,
    extremes,
)


def small(seed):
    generator = np.random.default_rng(seed)
    n = 7
    propensity = 0.1 + 0.8 * generator.random(n)
    log = Log(
        loss=generator.integers(0, 4, n) / 3,
        action=np.zeros(n, dtype=int),
        propensity=propensity,
        cluster=np.arange(n) // 2,
        n_actions=2,
    )
    first = generator.random(n)
    return log, view(log, np.column_stack([first, 1 - first]))


@pytest.mark.parametrize("seed", range(20))
def test_bounds_equal_the_best_of_all_corners(seed):
    log, policy = small(seed)
    gamma = 1.0 + seed / 5
    probability = policy.weight * log.propensity
    odds = 1 / log.propensity - 1
    ends = np.stack([probability * (1 + odds / gamma), probability * (1 + odds * gamma)])
    corners = [
        (w := ends[list(choice), np.arange(7)]) @ log.loss / w.sum()
        for choice in product((0, 1), repeat=7)
    ]
    (found,) = bound_risk(log, policy, gammas=(gamma,)).bounds
    assert found.risk_least.value == pytest.approx(min(corners), abs=1e-12)
    assert found.risk_most.value == pytest.approx(max(corners), abs=1e-12)


def test_without_confounding_the_bounds_are_snips_and_its_interval():
    log, table, _ = make_log()
    policy = view(log, table)
    plain = snips(log.loss, policy.weight, log.cluster)
    (found,) = bound_risk(log, policy, gammas=(1.0,)).bounds
    for bound in (found.risk_least, found.risk_most):
        assert (bound.value, bound.low, bound.high) == pytest.approx(
            (plain.risk, plain.low, plain.high)
        )
    clinicians = logged_risk(log.loss, log.cluster).risk
    assert found.gain_least.value == pytest.approx(plain.risk - clinicians)


def test_bounds_widen_with_gamma_and_the_gain_is_risk_minus_the_clinicians():
    log, table, _ = make_log()
    found = bound_risk(log, view(log, table), gammas=(3.0, 1.0, 2.0)).bounds
    assert [b.gamma for b in found] == [1, 2, 3]
    clinicians = logged_risk(log.loss, log.cluster).risk
    for narrow, wide in pairwise(found):
        assert wide.risk_least.value < narrow.risk_least.value
        assert wide.risk_most.value > narrow.risk_most.value
    for bound in found:
        assert bound.gain_most.value == pytest.approx(bound.risk_most.value - clinicians)
        assert bound.risk_most.low < bound.risk_most.value < bound.risk_most.high


def strong_gain(n=400):
    """A policy with loss 0.1 where it matches and clinicians with 0.5 on average."""
    generator = np.random.default_rng(0)
    action = generator.integers(0, 2, n)
    loss = (generator.random(n) < np.where(action == 0, 0.1, 0.9)).astype(float)
    log = Log(
        loss=loss, action=action, propensity=np.full(n, 0.5), cluster=np.arange(n), n_actions=2
    )
    return log, view(log, np.tile([1.0, 0.0], (n, 1)))


def test_the_gamma_at_which_the_gain_is_gone():
    log, policy = strong_gain()
    found = bound_risk(log, policy, gammas=(1.0,), interval=Wald())
    at = bound_risk(log, policy, gammas=(found.gamma_point,), interval=Wald()).bounds[0]
    assert at.gain_most.value == pytest.approx(0, abs=1e-3)
    at = bound_risk(log, policy, gammas=(found.gamma_interval,), interval=Wald()).bounds[0]
    assert at.gain_most.high == pytest.approx(0, abs=1e-3)
    assert 1 < found.gamma_interval < found.gamma_point


def test_a_gain_that_is_not_there_is_gone_at_gamma_one():
    log, _ = strong_gain()
    worse = view(log, np.tile([0.0, 1.0], (log.n_decisions, 1)))
    found = bound_risk(log, worse, gammas=(1.0,))
    assert found.gamma_point == found.gamma_interval == 1


def test_a_gain_no_confounding_can_remove_is_never_gone():
    log, policy = strong_gain()
    fields = {name: getattr(log, name) for name in ("action", "propensity", "cluster")}
    sure = Log(loss=(log.action == 1).astype(float), n_actions=2, **fields)
    found = bound_risk(sure, view(sure, policy.probabilities), gammas=(1.0,))
    assert found.gamma_point == math.inf


def test_a_policy_that_never_matches_has_no_bounds_and_no_gain():
    log, _ = strong_gain()
    fields = {name: getattr(log, name) for name in ("loss", "propensity", "cluster")}
    other = Log(action=np.ones(log.n_decisions, dtype=int), n_actions=2, **fields)
    found = bound_risk(other, view(other, np.tile([1.0, 0.0], (log.n_decisions, 1))))
    assert math.isnan(found.bounds[0].risk_most.value)
    assert found.gamma_point == 1


@pytest.mark.parametrize("gammas", [(), (0.5,), (math.nan,)])
def test_a_gamma_below_one_is_refused(gammas):
    log, policy = strong_gain(20)
    with pytest.raises(
        SettingError, match=r"^gammas: must be one or more numbers of at least 1\.$"
    ):
        bound_risk(log, policy, gammas=gammas)


def best_of_a_stratum(loss, sure, open_, gamma, sign):
    """Greatest weighted loss that keeps the total: at most one weight lies inside its range."""
    small, large, total = sure + open_ / gamma, sure + open_ * gamma, (sure + open_).sum()
    values = []
    for choice in product((0, 1), repeat=loss.size):
        weight = np.where(choice, large, small)
        for place in range(loss.size):
            weight_there = total - (weight.sum() - weight[place])
            if small[place] - 1e-12 <= weight_there <= large[place] + 1e-12:
                moved = weight.copy()
                moved[place] = weight_there
                values.append(sign * (moved @ loss))
    return sign * max(values)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("most", [True, False])
def test_balanced_weights_are_the_best_of_all_that_keep_the_total_of_each_stratum(seed, most):
    generator = np.random.default_rng(seed)
    n, gamma = 8, 1.2 + seed / 5
    loss, stratum = generator.integers(0, 5, n) / 4, np.arange(n) // 4
    sure, open_ = generator.random(n), generator.random(n) * 2
    above, below = Extremes(loss, sure, open_, stratum).reach(gamma, most=most)
    wanted = sum(
        best_of_a_stratum(
            loss[own := stratum == number], sure[own], open_[own], gamma, 1 if most else -1
        )
        for number in (0, 1)
    )
    assert above.sum() == pytest.approx(wanted, abs=1e-12)
    assert below.sum() == pytest.approx((sure + open_).sum())


@pytest.mark.parametrize("seed", range(10))
def test_balanced_bounds_are_never_wider_than_free_ones(seed):
    log, table, _ = hidden_state(300, gamma=2.0, seed=seed, binary=bool(seed % 2))
    policy = view(log, table)
    sharp = bound_risk(log, policy, gammas=(1.0, 1.5, 4.0), balanced=True)
    free = bound_risk(log, policy, gammas=(1.0, 1.5, 4.0), balanced=False)
    assert sharp.balanced
    assert not free.balanced
    for own, wide in zip(sharp.bounds, free.bounds, strict=True):
        assert own.risk_most.value <= wide.risk_most.value + 1e-12
        assert own.risk_least.value >= wide.risk_least.value - 1e-12
    assert sharp.gamma_point >= free.gamma_point * 0.999


@pytest.mark.parametrize("binary", [True, False])
def test_balanced_bounds_meet_the_worst_hidden_state_where_free_ones_pass_it(binary):
    log, table, truth = hidden_state(20_000, gamma=3.0, seed=1, binary=binary)
    policy = view(log, table)
    (sharp,) = bound_risk(log, policy, gammas=(3.0,)).bounds
    (free,) = bound_risk(log, policy, gammas=(3.0,), balanced=False).bounds
    assert sharp.risk_most.value == pytest.approx(truth, abs=0.025)
    assert free.risk_most.value > truth + 0.05
    assert sharp.risk_most.high > truth


def test_nothing_is_open_where_the_policy_has_the_clinicians_own_probabilities():
    generator = np.random.default_rng(0)
    chance = generator.uniform(0.2, 0.8, 500)
    table = np.column_stack([chance, 1 - chance])
    action = (generator.random(500) > chance).astype(int)
    log = Log(
        loss=generator.integers(0, 2, 500).astype(float),
        action=action,
        propensity=table[np.arange(500), action],
        cluster=np.arange(500),
        n_actions=2,
        propensities=table,
    )
    (found,) = bound_risk(log, view(log, table), gammas=(5.0,)).bounds
    for bound in (found.gain_least, found.gain_most):
        assert bound.value == 0
    half = table.copy()
    half[250:] = [1.0, 0.0]
    ends = extremes(log, view(log, half), expected=None)
    assert (ends.open[:250] == 0).all()
    np.testing.assert_allclose(ends.sure[:250], 1)
    acted = np.arange(500) >= 250
    assert (ends.open[acted & (action == 0)] > 0).all()


def world(n, n_actions, seed, *, width=6):
    """Actions hang on column 0 most, then on 1, which goes with it, then on 2; on no other."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(n, width))
    x[:, 1] = 0.3 * x[:, 0] + 0.95 * x[:, 1]
    slope = np.zeros((width, n_actions))
    slope[:3] = np.outer([1.0, -0.6, 0.3], np.linspace(-1, 1, n_actions))
    powers = np.exp(x @ slope)
    chance = powers / powers.sum(axis=1, keepdims=True)
    action = (chance.cumsum(axis=1) > generator.random((n, 1))).argmax(axis=1)
    return x, action


NAMES = {f"x{number}": [number] for number in range(6)}


def test_features_come_in_the_order_of_their_strength_then_the_strongest_together():
    x, action = world(4_000, 3, 0)
    found = benchmark_features(x, NAMES, action, 3)
    assert [strength.names for strength in found[:3]] == [("x0",), ("x1",), ("x2",)]
    assert [len(strength.names) for strength in found] == [1, 1, 1, 1, 1, 2, 3]
    alone = [strength.gamma for strength in found[:5]]
    assert alone == sorted(alone, reverse=True)
    assert alone[0] > 4
    assert 1 <= alone[4] < 1.15


def test_two_actions_by_the_formula():
    generator = np.random.default_rng(1)
    x = generator.normal(size=(4_000, 2))
    action = (generator.random(4_000) < 1 / (1 + np.exp(-1.2 * x[:, 0]))).astype(int)
    found = benchmark_features(x, {"dose": [0], "age": [1]}, action, 2)
    # without it the odds are about one, with it exp(1.2 x); 1.96 is the 95 % quantile of |x|
    assert found[0].names == ("dose",)
    assert found[0].gamma == pytest.approx(np.exp(1.2 * 1.96), rel=0.2)


def test_leaving_features_out_is_the_fit_without_them():
    x, action = world(2_000, 4, 2)
    scaled = Units.of(x).standardised(x)

    def log_odds(columns):
        model = LogisticRegression(C=1 / (PENALTY * len(x)), tol=1e-8, max_iter=1000)
        chance = model.fit(scaled[:, columns], action).predict_proba(scaled[:, columns])
        own = chance[np.arange(len(x)), action]
        return np.log(own / (1 - own))

    whole = log_odds(range(6))
    for found in benchmark_features(x, NAMES, action, 4):
        left = [number for number in range(6) if f"x{number}" not in found.names]
        wanted = np.exp(np.quantile(np.abs(whole - log_odds(left)), 0.95))
        assert found.gamma == pytest.approx(wanted, rel=0.03)


def test_what_the_others_tell_is_not_lost_with_a_feature():
    x, action = world(4_000, 3, 3)
    twice = np.column_stack([x, x[:, 0] + 0.01 * x[:, 5]])
    names = {**NAMES, "copy": [6]}
    found = {s.names: s.gamma for s in benchmark_features(twice, names, action, 3)}
    assert found.get(("x0",), 1.0) < 1.5


def test_without_a_feature_that_varies_there_is_nothing_to_compare_with():
    action = np.arange(100) % 2
    assert benchmark_features(np.ones((100, 2)), {"a": [0], "b": [1]}, action, 2) == ()
    assert benchmark_features(np.eye(100), {"a": [0]}, np.zeros(100, int), 2) == ()


def bounds_of(world, **more):
    model = model_losses(world.data)
    log = Log.of(model.complete(world.data), propensities=world.propensities)
    return bound_missing(model, log, view(log, world.policy), **more)


@pytest.mark.parametrize("by_loss", [3.0, -3.0])
def test_bounds_hold_the_truth_when_the_loss_itself_decides(by_loss):
    world = make_missing(3_000, seed=3, by_loss=by_loss)
    plain, *_, worst = bounds_of(world).bounds
    assert not plain.risk_least.low < world.risk < plain.risk_most.high
    assert worst.gamma == math.inf
    assert worst.risk_least.low < world.risk < worst.risk_most.high
    assert worst.gain_least.low < world.gain < worst.gain_most.high


def test_bounds_widen_with_gamma_up_to_the_worst_case():
    found = bounds_of(make_missing(1_000, seed=4), gammas=(1.0, 2.0, 1000.0, math.inf)).bounds
    for narrow, wide in pairwise(found):
        assert wide.gain_most.value >= narrow.gain_most.value
        assert wide.risk_least.value <= narrow.risk_least.value
    assert found[-2].risk_most.value == found[-1].risk_most.value


def test_the_worst_case_of_a_few_decisions_by_hand():
    observed = np.array([True, True, False, False])
    model = LossModel(observed, np.array([1.0, 0, 0, 0]), np.full(4, 0.5), np.full(4, 0.5))
    log = Log(
        loss=model.stand_in,
        action=np.array([0, 1, 0, 1]),
        propensity=np.full(4, 0.5),
        cluster=np.arange(4),
        n_actions=2,
    )
    policy = view(log, np.tile([1.0, 0.0], (4, 1)))
    (worst,) = bound_missing(model, log, policy, gammas=(math.inf,)).bounds
    assert (worst.risk_least.value, worst.risk_most.value) == (0.5, 1.0)
    # action 0 counts for the policy: 1 + missing, against a quarter of all four
    assert worst.gain_most.value == pytest.approx(1.0 - 0.5)
    assert worst.gain_least.value == pytest.approx(0.5 - 0.5)


def test_without_dependence_the_bound_is_the_weighted_estimate():
    world = make_missing(800, seed=5)
    model = model_losses(world.data)
    log = Log.of(model.complete(world.data), propensities=world.propensities)
    policy = view(log, world.policy)
    (plain,) = bound_missing(model, log, policy, gammas=(1.0,)).bounds
    risk = snips(log.loss, policy.weight, log.clusters)
    gain = difference(risk, logged_risk(log.loss, log.clusters))
    assert plain.risk_most.value == pytest.approx(risk.risk)
    assert plain.gain_least.value == pytest.approx(gain.difference)


def test_losses_beyond_the_unit_have_no_worst_case_and_gammas_are_checked():
    world = make_missing(400, seed=6)
    far = type(world.data)(
        sequence=world.data.sequence,
        offsets=world.data.offsets,
        schema=world.data.schema,
        action=world.data.action,
        loss=world.data.loss * 10,
        missing_loss="weight",
    )
    model = model_losses(far)
    log = Log.of(model.complete(far), propensities=world.propensities)
    found = bound_missing(model, log, view(log, world.policy))
    assert all(math.isfinite(bound.gamma) for bound in found.bounds)
    with pytest.raises(SettingError, match=r"^gammas: "):
        bound_missing(model, log, view(log, world.policy), gammas=(0.5,))


def test_hidden_confounding_is_bounded_by_the_losses_and_not_by_the_noise_of_stand_ins():
    world = make_missing(3_000, seed=7)
    model = model_losses(world.data)
    log = Log.of(model.complete(world.data), propensities=world.propensities)
    policy = view(log, world.policy)
    (noisy,) = bound_risk(log, policy, gammas=(3.0,)).bounds
    (own,) = bound_risk(log, policy, gammas=(3.0,), losses=model).bounds
    assert 0 <= own.risk_least.value < own.risk_most.value <= 1
    assert own.risk_most.value - own.risk_least.value < (
        noisy.risk_most.value - noisy.risk_least.value
    )


def test_a_stand_in_is_the_model_corrected_by_what_was_observed():
    model = LossModel(
        observed=np.array([True, True, False]),
        loss=np.array([1.0, 0.0, 0.0]),
        chance=np.array([0.25, 0.5, 0.5]),
        predicted=np.array([0.5, 0.5, 0.3]),
    )
    assert model.stand_in.tolist() == [0.5 + 4 * 0.5, 0.5 - 2 * 0.5, 0.3]


def test_weighting_finds_the_risks_that_dropping_misses():
    world = make_missing(6_000, seed=1)
    log = Log.of(world.data, propensities=world.propensities)
    assert log.n_decisions == 6_000
    policy = view(log, world.policy)
    risk, clinicians = snips(log.loss, policy.weight, log.clusters), world.risk - world.gain
    logged = logged_risk(log.loss, log.clusters)
    assert risk.low < world.risk < risk.high
    assert logged.low < clinicians < logged.high
    seen = ~np.isnan(world.data.logged_loss)
    own = world.data.logged_loss[seen]
    dropped = logged_risk(own, log.cluster[seen])
    assert not dropped.low < clinicians < dropped.high
    assert snips(own, policy.weight[seen], log.cluster[seen]).high < world.risk


def test_completing_leaves_observed_stays_and_whole_logs_alone():
    world = make_missing(300, seed=1)
    whole = complete_losses(world.data)
    assert np.isfinite(whole.logged_loss).all()
    assert whole.n_decisions == world.data.n_decisions
    assert complete_losses(whole) is whole
    assert model_losses(whole) is None
    model = model_losses(world.data)
    assert (model.chance >= 0.05).all()
    assert (model.chance <= 1).all()
    assert 0 <= model.predicted.min() <= model.predicted.max() <= 1


def test_an_action_of_which_no_loss_is_known_is_refused_by_its_number():
    world = make_missing(300, seed=2)
    loss = np.where(world.data.action == 1, np.nan, world.data.loss)
    blind = type(world.data)(**{**_fields(world.data), "loss": loss})
    with pytest.raises(
        DataError, match=r"^loss: must be known for some decisions of each action, not 1"
    ):
        complete_losses(blind)


def _fields(data):
    names = ("sequence", "offsets", "schema", "action", "missing_loss")
    return {name: getattr(data, name) for name in names}
