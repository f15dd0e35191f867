"""Estimators of a risk: by hand, by property, and against an independent implementation."""

import csv
import inspect
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from evaluation_logs import cases, make_log
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.make_obp_reference import COLUMNS, N_LOGS, random_log

from etips import evaluation
from etips.errors import SettingError
from etips.evaluation import (
    ESTIMATORS,
    Wald,
    assess,
    clipped_ips,
    difference,
    dm,
    dr,
    dr_shrinkage,
    estimator_names,
    ips,
    logged_risk,
    matching_factor,
    sndr,
    snips,
    switch_dr,
    view,
    weigh,
)
from etips.evaluation.estimators import BESIDE, WEIGHTS, find_estimators
from etips.evaluation.risk import QUANTILES

LOSS = np.array([1.0, 0.0, 1.0, 0.0])
WEIGHT = np.array([2.0, 1.0, 0.0, 1.0])
CLUSTER = np.array([7, 7, 9, 9])
MODEL = {
    "predicted": np.array([0.5, 0.25, 0.5, 0.5]),
    "predicted_policy": np.array([0.25, 0.5, 0.75, 0.5]),
}
TUNED = (
    lambda c, **k: clipped_ips(c.loss, c.weight, c.cluster, **k),
    lambda c, **k: switch_dr(c.loss, c.weight, c.cluster, **c.model, **k),
    lambda c, **k: dr_shrinkage(c.loss, c.weight, c.cluster, **c.model, **k),
)
CORE = (
    lambda c, **k: ips(c.loss, c.weight, c.cluster, **k),
    lambda c, **k: snips(c.loss, c.weight, c.cluster, **k),
    lambda c, **k: dr(c.loss, c.weight, c.cluster, **c.model, **k),
)
OTHER = (
    lambda c, **k: dm(c.predicted_policy, c.cluster, **k),
    lambda c, **k: sndr(c.loss, c.weight, c.cluster, **c.model, **k),
    lambda c, **k: logged_risk(c.loss, c.cluster, **k),
    lambda c, **k: matching_factor(c.weight, c.cluster, **k),
    lambda c, **k: clipped_ips(c.loss, c.weight, c.cluster, clip=3.0, **k),
    lambda c, **k: switch_dr(c.loss, c.weight, c.cluster, **c.model, switch=3.0, **k),
    lambda c, **k: dr_shrinkage(c.loss, c.weight, c.cluster, **c.model, shrinkage=4.0, **k),
)
thorough = settings(max_examples=1000, deadline=None)


def same(first, second, *, tolerance=1e-9):
    for name in ("risk", "std_error", "low", "high"):
        expected = getattr(second, name)
        assert getattr(first, name) == pytest.approx(
            expected, abs=tolerance, rel=tolerance, nan_ok=True
        )


def test_hand_worked_estimates():
    assert ips(LOSS, WEIGHT, CLUSTER).risk == 2 / 4
    assert snips(LOSS, WEIGHT, CLUSTER).risk == 2 / 4
    assert clipped_ips(LOSS, WEIGHT, CLUSTER, clip=1.5).risk == 1.5 / 4
    assert dm(MODEL["predicted_policy"], CLUSTER).risk == 2 / 4
    # corrections 2 * 0.5, 1 * -0.25, 0, 1 * -0.5 sum to 0.25
    assert dr(LOSS, WEIGHT, CLUSTER, **MODEL).risk == (2 + 0.25) / 4
    assert sndr(LOSS, WEIGHT, CLUSTER, **MODEL).risk == 2 / 4 + 0.25 / 4
    assert switch_dr(LOSS, WEIGHT, CLUSTER, **MODEL, switch=1.0).risk == (2 - 0.75) / 4
    shrunk = (2 / 3) * 2 * 0.5 / (4 / 3 + 2 / 3)  # 2 w / (w^2 + 2) at w = 2 is 2/3
    assert dr_shrinkage(LOSS, WEIGHT, CLUSTER, **MODEL, shrinkage=2.0).risk == pytest.approx(
        (2 + shrunk - (2 / 3) * 0.75) / 4
    )
    assert logged_risk(LOSS, CLUSTER).risk == 0.5
    assert matching_factor(WEIGHT, CLUSTER).risk == 1.0


def test_hand_worked_standard_error_of_snips():
    # cluster totals (2, 3) and (0, 1), risk 1/2; leaving one out gives risks 0 and 2/3
    estimate = snips(LOSS, WEIGHT, CLUSTER)
    mean = (0 + 2 / 3) / 2
    expected = math.sqrt((2 - 1) / 2 * ((0 - mean) ** 2 + (2 / 3 - mean) ** 2))
    assert estimate.std_error == pytest.approx(expected)
    assert (estimate.n_decisions, estimate.n_clusters) == (4, 2)
    assert estimate.effective_n == pytest.approx(16 / 6)


@given(cases(), st.floats(-5, 5))
@thorough
def test_translating_the_loss_translates_snips_and_leaves_its_error_s2(case, shift):
    plain = snips(case.loss, case.weight, case.cluster, interval=Wald())
    moved = snips(case.loss + shift, case.weight, case.cluster, interval=Wald())
    assert moved.risk == pytest.approx(plain.risk + shift, abs=1e-9)
    assert moved.std_error == pytest.approx(plain.std_error, abs=1e-9)


@given(cases(), st.floats(0.5, 5))
@thorough
def test_translating_the_loss_moves_ips_by_the_matching_factor_s2(case, shift):
    plain = ips(case.loss, case.weight, case.cluster).risk
    moved = ips(case.loss + shift, case.weight, case.cluster).risk
    factor = matching_factor(case.weight, case.cluster).risk
    assert moved - plain == pytest.approx(shift * factor, abs=1e-9)


@given(cases(), st.randoms(use_true_random=False), st.sampled_from(OTHER))
@thorough
def test_the_order_of_the_decisions_does_not_matter_s2(case, random, other):
    rows = list(range(case.loss.size))
    random.shuffle(rows)
    for estimate in (*CORE, other):
        same(estimate(case), estimate(case.take(np.array(rows))))


@given(cases(), st.integers(0, 11), st.sampled_from(OTHER))
@thorough
def test_a_decision_given_twice_is_one_that_counts_twice_s2(case, row, other):
    twice = row % case.loss.size
    rows = np.append(np.arange(case.loss.size), twice)
    count = np.ones(case.loss.size)
    count[twice] = 2
    for estimate in (*CORE, other):
        repeated, counted = estimate(case.take(rows)), estimate(case, count=count)
        same(repeated, counted)
        assert repeated.effective_n == pytest.approx(counted.effective_n)


@given(cases())
@thorough
def test_dr_without_a_model_is_ips_and_without_weights_is_dm_s2(case):
    nothing = np.zeros(case.loss.size)
    no_model = {"predicted": nothing, "predicted_policy": nothing}
    robust = dr(case.loss, case.weight, case.cluster, **no_model, interval=Wald())
    same(robust, ips(case.loss, case.weight, case.cluster, interval=Wald()))
    direct = dm(case.predicted_policy, case.cluster, interval=Wald())
    same(dr(case.loss, nothing, case.cluster, **case.model, interval=Wald()), direct)
    for estimate in (
        dr_shrinkage(case.loss, case.weight, case.cluster, **case.model, shrinkage=0.0),
        switch_dr(case.loss, case.weight, case.cluster, **case.model, switch=0.0),
    ):
        assert estimate.risk == pytest.approx(direct.risk, abs=1e-12)


@given(cases(), st.floats(-3, 3))
@thorough
def test_a_constant_loss_has_no_error_s2(case, constant):
    for level in (constant, 0.0, 1.0):
        estimate = snips(np.full(case.loss.size, level), case.weight, case.cluster)
        assert estimate.risk == pytest.approx(level)
        assert estimate.std_error == 0
        assert estimate.low <= estimate.risk <= estimate.high
        if 0 <= level <= 1:  # a loss within known bounds might have been another one
            assert estimate.low < estimate.high


@given(cases())
@settings(max_examples=200, deadline=None)
def test_an_infinite_tuning_parameter_is_no_tuning(case):
    plain = ips(case.loss, case.weight, case.cluster)
    robust = dr(case.loss, case.weight, case.cluster, **case.model)
    same(TUNED[0](case, clip=math.inf), plain)
    same(TUNED[1](case, switch=math.inf), robust)
    same(TUNED[2](case, shrinkage=math.inf), robust)


@given(cases())
@settings(max_examples=200, deadline=None)
def test_the_chosen_tuning_has_no_more_estimated_squared_error_than_none(case):
    plain = ips(case.loss, case.weight, case.cluster)
    tuned = clipped_ips(case.loss, case.weight, case.cluster)
    assert tuned.std_error <= plain.std_error
    given = clipped_ips(case.loss, case.weight, case.cluster, clip=tuned.tuning)
    same(tuned, given)


@given(cases())
@settings(max_examples=200, deadline=None)
def test_tuning_does_not_shorten_the_interval(case):
    """The bias it adds cannot be seen in the sample."""
    plain = dr(case.loss, case.weight, case.cluster, **case.model)
    for estimate in (TUNED[1](case), TUNED[2](case), TUNED[2](case, shrinkage=0.5)):
        assert estimate.low == min(plain.low, estimate.risk)
        assert estimate.high == max(plain.high, estimate.risk)
        assert abs(estimate.risk - plain.risk) <= estimate.std_error * (1 + 1e-12)
        gain = difference(estimate, logged_risk(case.loss, case.cluster))
        assert gain.difference == pytest.approx(plain.risk - case.loss.mean(), abs=1e-12)


def test_a_policy_that_never_matches_has_no_snips_and_says_so_without_a_warning():
    estimate = snips(LOSS, np.zeros(4), CLUSTER)
    assert math.isnan(estimate.risk)
    assert math.isnan(estimate.std_error)
    assert math.isnan(estimate.low)
    assert estimate.effective_n == 0
    assert clipped_ips(LOSS, np.zeros(4), CLUSTER).risk == 0


def test_all_the_weight_in_one_cluster_gives_no_false_certainty():
    for loss in (LOSS, np.array([0.0, 0.0, 1.0, 0.0])):
        estimate = snips(loss, np.array([1.0, 2.0, 0.0, 0.0]), CLUSTER)
        assert estimate.std_error == math.inf
        assert (estimate.low, estimate.high) == (0, 1)


def test_weigh_divides_the_logged_action():
    probabilities = np.array([[0.2, 0.8], [1.0, 0.0]])
    assert weigh(probabilities, [1, 1], [0.4, 0.5]).tolist() == [2.0, 0.0]


def test_cluster_ids_may_be_any_whole_numbers_or_names():
    plain = snips(LOSS, WEIGHT, CLUSTER)
    for ids in ([-5, -5, 10**12, 10**12], ["a", "a", "b", "b"], [7.0, 7.0, 9.0, 9.0]):
        same(snips(LOSS, WEIGHT, np.array(ids)), plain)


WEIGHT_TUNING_LOSS = np.array([1.0, 0.0, 1.0, 0.0])
WEIGHT_TUNING_WEIGHT = np.array([2.0, 1.0, 0.0, 1.0])
WEIGHT_TUNING_CLUSTER = np.array([7, 7, 9, 9])


def test_the_choice_weighs_noise_against_the_distance_from_no_tuning():
    generator = np.random.default_rng(0)
    n = 400
    weight = np.where(np.arange(n) == 7, 500.0, generator.exponential(size=n))
    loss, stay = np.ones(n), np.arange(n)
    chosen, plain = clipped_ips(loss, weight, stay), ips(loss, weight, stay)
    errors = {
        limit: clipped_ips(loss, weight, stay, clip=limit).std_error
        for limit in (np.inf, *np.quantile(weight, QUANTILES))
    }
    assert chosen.std_error == pytest.approx(min(errors.values()))
    assert errors[chosen.tuning] == pytest.approx(chosen.std_error)
    assert chosen.tuning < 500
    kept = np.minimum(weight, chosen.tuning)
    noise = ips(loss, kept, stay).std_error
    assert chosen.std_error == pytest.approx(math.hypot(noise, kept.mean() - weight.mean()))
    assert chosen.low <= min(plain.low, chosen.risk)
    assert chosen.high == plain.high
    assert chosen.effective_n > plain.effective_n


def test_a_heavy_weight_is_clipped_by_the_default_rule():
    generator = np.random.default_rng(0)
    weight = np.append(generator.random(400) * 2, 100.0)
    loss = np.append((generator.random(400) < 0.5).astype(float), 1.0)
    estimate = clipped_ips(loss, weight, np.arange(401))
    plain = ips(loss, weight, np.arange(401))
    assert estimate.tuning < 100
    assert estimate.std_error < plain.std_error
    assert estimate.effective_n > plain.effective_n


@pytest.mark.parametrize("clip", [-1.0, math.nan])
def test_a_tuning_parameter_below_zero_is_refused(clip):
    with pytest.raises(SettingError, match=r"^clip: must be zero or more\.$"):
        clipped_ips(WEIGHT_TUNING_LOSS, WEIGHT_TUNING_WEIGHT, WEIGHT_TUNING_CLUSTER, clip=clip)


DOCUMENT = Path(__file__).parents[3] / "docs" / "method" / "evaluation.md"


@pytest.mark.parametrize("entry", ESTIMATORS.values(), ids=list(ESTIMATORS))
def test_every_entry_is_named_after_its_formula_and_explained(entry):
    log, table, _ = make_log()
    assert entry.estimate(log, view(log, table)).estimator == entry.name == entry.formula.__name__
    assert getattr(evaluation, entry.name) is entry.formula
    assert len(entry.label) <= 14  # the room beside its interval on a page
    assert entry.sentence.endswith(".")
    assert f"| `{entry.name}` |" in DOCUMENT.read_text()


@pytest.mark.parametrize("entry", ESTIMATORS.values(), ids=list(ESTIMATORS))
def test_what_an_entry_needs_is_what_its_formula_asks_for(entry):
    own = inspect.signature(entry.formula).parameters
    required = {name for name, p in own.items() if p.default is p.empty}
    assert required == {*entry.needs, "cluster"}


def test_without_predicted_losses_those_remain_that_need_no_model():
    log, _, _ = make_log(predicted=False)
    weighted = tuple(name for name, entry in ESTIMATORS.items() if entry.needs == WEIGHTS)
    assert estimator_names(log) == weighted
    assert {"snips", "ips", "clipped_ips"} <= set(weighted)
    assert ESTIMATORS["dm"].needs == ("predicted_policy",)
    with pytest.raises(SettingError, match=rf"^estimators: must be among {', '.join(weighted)}\.$"):
        find_estimators(("snips", "dr"), log)


def test_the_headline_uses_predicted_losses_where_they_are_and_needs_none():
    assert estimator_names(make_log()[0])[0] == "sndr"
    assert estimator_names(make_log(predicted=False)[0])[0] == "snips"
    assert sorted(estimator_names(make_log()[0])) == sorted(ESTIMATORS)
    assert BESIDE == ("snips", "ips", "dr")


def test_a_new_entry_is_estimated_like_the_others(monkeypatch):
    added = replace(ESTIMATORS["snips"], name="own", label="Own")
    monkeypatch.setitem(ESTIMATORS, "own", added)
    log, table, _ = make_log()
    assert estimator_names(log)[-1] == "own"
    estimates = assess(log, table).estimates
    own, plain = estimates[-1], next(e for e in estimates if e.estimator == "snips")
    assert own == plain


REFERENCE = Path(__file__).with_name("reference") / "obp.csv"


def estimate(log):
    rows = np.arange(log.loss.size)
    weight = weigh(log.probabilities, log.action, log.propensity)
    arrays = (log.loss, weight, rows)
    model = {
        "predicted": log.predicted[rows, log.action],
        "predicted_policy": (log.predicted * log.probabilities).sum(axis=1),
    }
    return {
        "inputs": log.total(),
        "ips": ips(*arrays).risk,
        "snips": snips(*arrays).risk,
        "dm": dm(model["predicted_policy"], rows).risk,
        "dr": dr(*arrays, **model).risk,
        "sndr": sndr(*arrays, **model).risk,
        "switch_dr": switch_dr(*arrays, **model, switch=log.switch).risk,
        "dr_shrinkage": dr_shrinkage(*arrays, **model, shrinkage=log.shrinkage).risk,
    }


def test_point_estimates_equal_those_of_obp_on_1000_random_logs_s1():
    with REFERENCE.open() as file:
        stored = list(csv.DictReader(file))
    assert len(stored) == N_LOGS
    for seed, row in enumerate(stored):
        found = estimate(random_log(seed))
        for name in COLUMNS:
            assert found[name] == pytest.approx(float(row[name]), rel=1e-12, abs=1e-15), (
                seed,
                name,
            )
