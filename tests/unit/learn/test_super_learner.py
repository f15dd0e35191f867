"""What is tried, what is kept and why: the stack, its lean, and the judge."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import etips
from etips.errors import SettingError
from etips.files.json_documents import canonical
from etips.learn.judge import LEANS, LEAST_LEAN_BLIND, Judge, choose
from etips.learn.stacking import LeastSquares, mix_propensities
from etips.results.parsing import read_choice

CHEAP = ("regression", "boosting")


def rows(n, *, seed=0, effect=1.0, good=0.0):
    """Two features, two arms, the better by a threshold; the clinicians know as much as `good`."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    helps = np.where(x[:, 0] > 0, 1.0, -1.0) * effect
    chance = 1 / (1 + np.exp(-0.5 * x[:, 1] - good * helps))
    action = (rng.random(n) < chance).astype(int)
    loss = x[:, 1] - helps * (action - 0.5) + rng.normal(size=n)
    return etips.from_arrays(x, action, loss), helps


def test_a_threshold_is_found_and_acted_on():
    log, _ = rows(800)
    fresh, helps = rows(2_000, seed=1)
    learner = etips.SuperLearner(candidates=CHEAP).fit(log)
    right = learner.predict(fresh) == (helps > 0)
    assert learner.fit_.choice.kept.tier == "policy"
    assert right.mean() > 0.9


def test_where_nothing_helps_the_clinicians_are_kept():
    log, _ = rows(600, effect=0.0)
    learner = etips.SuperLearner(candidates=CHEAP).fit(log)
    assert learner.fit_.choice.kept.tier == "clinicians"
    assert learner.fit_.policy.kind == "imitation"
    assert "not better beyond noise" in learner.fit_.choice.sentence


def test_the_record_adds_up_and_comes_back_from_a_file(tmp_path):
    record = etips.SuperLearner(candidates=CHEAP).fit(rows(500)[0]).fit_.choice
    assert sum(own.weight for own in record.tried if own.tier == "model") == pytest.approx(1)
    assert sum(record.propensities.values()) == pytest.approx(1)
    assert sum(own.kept for own in record.tried if own.tier != "model") == 1
    assert [own.lean for own in record.tried if own.tier == "policy"] == list(LEANS)
    (tmp_path / "choice.json").write_bytes(canonical(record.to_json()))
    assert read_choice(tmp_path / "choice.json") == record


def test_a_product_of_two_columns_is_found_by_squares_and_products():
    rng = np.random.default_rng(0)
    x, action = rng.normal(size=(1_200, 4)), rng.integers(0, 2, 1_200)
    helps = np.sign(x[:, 0] * x[:, 1])
    log = etips.from_arrays(x, action, rng.normal(size=1_200) - helps * (action - 0.5))
    learner = etips.SuperLearner(candidates=("products",)).fit(log)
    assert learner.fit_.choice.kept.tier == "policy"
    assert ((learner.predict(log) == 1) == (helps > 0)).mean() > 0.8


def test_models_beyond_the_budget_are_left_out_the_dearest_first_and_named():
    record = etips.SuperLearner(candidates=CHEAP, seconds=0.3).fit(rows(500)[0]).fit_.choice
    assert "boosting" in record.left_out
    assert "regression" not in record.left_out
    kept = record.seconds_of_all - sum(record.left_out.values())
    assert 0 < kept <= 0.3 < record.seconds_of_all


def test_the_policy_leans_to_the_clinicians_where_they_saw_what_the_log_hides():
    rng = np.random.default_rng(0)
    x, action = rng.normal(size=(100, 3, 2)), rng.integers(0, 2, (100, 3))
    log = etips.from_arrays(x, action, rng.normal(size=(100, 3)), lag=1)
    known = replace(log, propensity=np.full(log.n_steps, 0.5))

    def leans(stays):
        tried = etips.SuperLearner(candidates=CHEAP).fit(stays).fit_.choice.tried
        return [own.lean for own in tried if own.tier == "policy"]

    assert leans(log) == [own for own in LEANS if own >= LEAST_LEAN_BLIND]
    assert leans(known) == list(LEANS)


def test_a_network_stands_beside_the_stack_and_is_finished_if_it_is_kept(monkeypatch):
    log, _ = rows(1_000, effect=2.0)
    take_last = lambda *asked: replace(choose(*asked), best=len(LEANS))  # noqa: E731
    monkeypatch.setattr("etips.learn.super_learner.choose", take_last)
    kept = etips.SuperLearner(candidates=("network",)).fit(log).fit_
    assert kept.choice.kept.name == "the policy network"
    assert kept.policy.kind == "softmax"
    fresh, helps = rows(1_000, seed=1, effect=2.0)
    acts = kept.policy.deployed(fresh).probabilities.argmax(axis=1)
    assert ((acts == 1) == (helps > 0)).mean() > 0.8


def test_names_of_candidates_that_are_none_are_refused():
    with pytest.raises(SettingError, match=r"candidates: must be some of regression, forest"):
        etips.SuperLearner(candidates=("oracle",)).fit(rows(50)[0])


# The judge


def judge(scores, action, loss, chance):
    n = len(action)
    return Judge(
        np.asarray(action),
        np.asarray(loss, float),
        np.asarray(chance, float),
        np.asarray(scores, float),
        np.arange(n),
        np.arange(n) % 2,
    )


def test_a_verdict_by_hand():
    own = judge([[1, 0], [0, 2], [3, 1], [1, 1]], [0, 0, 1, 1], [1, 0, 1, 1], [0.5, 0.5, 0.5, 0.5])
    verdict = own.verdict(np.array([1, 0, 1, 1]))
    assert verdict.gap == pytest.approx((-1 + 0 + 0 + 0) / 4)
    deviations = np.array([-0.75, 0.25, 0.25, 0.25])
    assert verdict.error == pytest.approx(np.sqrt(4 / 3 * (deviations**2).sum()) / 4)
    assert verdict.factor == pytest.approx((0 + 2 + 2 + 2) / 4)
    assert verdict.size == pytest.approx(3)
    assert verdict.standing == np.inf  # too few decisions to be kept


def test_of_two_policies_that_promise_the_same_the_surer_one_is_taken():
    rng = np.random.default_rng(0)
    n = 2_000
    action = rng.integers(0, 3, n)
    scores = np.stack([np.zeros(n), np.full(n, -0.2), -0.22 + 2 * rng.normal(size=n)], axis=1)
    scores[:, 2] -= scores[:, 2].mean() + 0.22
    every = [np.full(n, number) for number in range(3)]
    choice = choose(judge(scores, action, np.zeros(n), np.full(n, 1 / 3)), lambda _: every)
    assert choice.verdicts[2].gap < choice.verdicts[1].gap
    assert choice.best == 1


def test_decisions_of_a_patient_are_one_piece_of_evidence():
    own = judge([[1, 0]] * 4, [0, 0, 1, 1], [1, 0, 1, 1], [0.5] * 4)
    together = replace(own, patient=np.array([0, 0, 1, 1]))
    gaps = np.array([1.0, 1.0, -1.0, -1.0])
    assert own.mean(gaps)[1] < together.mean(gaps)[1]


def test_what_choosing_comes_to_is_not_the_luck_of_the_best():
    rng = np.random.default_rng(0)
    n = 400
    action = rng.integers(0, 2, n)
    loss = rng.normal(size=n)
    scores = np.zeros((n, 2))
    scores[np.arange(n), action] = 2 * loss
    own = judge(scores, action, loss, np.full(n, 0.5))
    candidates = [rng.integers(0, 2, n) for _ in range(50)]  # none is better than another
    choice = choose(own, lambda _: candidates)
    assert choice.verdicts[choice.best].gap < -0.1
    assert choice.corrected > choice.verdicts[choice.best].gap + 0.05
    assert not choice.beats_clinicians


# Weights


def test_weights_are_convex_and_find_what_made_the_target():
    rng = np.random.default_rng(0)
    tables = [rng.normal(size=(500, 3)) for _ in range(3)]
    target = 0.7 * tables[0] + 0.3 * tables[2] + 0.1 * rng.normal(size=(500, 3))
    weights = LeastSquares(tables, target, np.arange(500) % 5).weights()
    assert weights == pytest.approx([0.7, 0, 0.3], abs=0.03)
    assert weights.sum() == pytest.approx(1)


def test_propensities_that_fit_what_was_done_get_the_weight():
    rng = np.random.default_rng(0)
    x = rng.normal(size=2_000)
    chance = 1 / (1 + np.exp(-2 * x))
    action = (rng.random(2_000) < chance).astype(int)
    right, blind = np.stack([1 - chance, chance], 1), np.full((2_000, 2), 0.5)
    mixture = mix_propensities([blind, right], action)
    assert mixture.weights[1] > 0.9
    assert mixture.temperature == pytest.approx(1, abs=0.15)
    assert mixture.table.sum(axis=1) == pytest.approx(np.ones(2_000))


def test_a_column_that_is_never_known_with_an_action_and_a_rare_action_are_borne():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3))
    action = np.r_[rng.integers(0, 2, 295), [2] * 5]
    x[action == 1, 2] = np.nan
    x[0, 1] = np.nan
    columns = {f"x{k}": x[:, k] for k in range(3)}
    table = pl.DataFrame({**columns, "arm": action, "harm": rng.normal(size=300)})
    log = etips.read_table(table.fill_nan(None), action="arm", loss="harm")
    assert etips.SuperLearner(candidates=CHEAP).fit(log).predict(log).shape == (300,)
