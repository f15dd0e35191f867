"""Evaluating policies end to end: where propensities and predicted losses come from."""

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import etips
from etips.evaluation.log import Log
from etips.files.json_documents import canonical
from etips.learn import BestPossible, LoggingPolicy, MostFrequent, PredictiveModel, RandomPolicy
from etips.learn.fitting.stages import Training
from etips.learn.nuisance.outcome_models import SklearnOutcome
from etips.learn.training.settings import Settings
from etips.models.encoders.gru import GRU
from etips.results.evaluate import assess_policies, evaluate
from etips.results.evaluation_log import Models
from etips.results.parsing import parse_results
from etips.worlds.clinic import Clinic

QUICK = Training(n_folds=2, **{s: Settings(epochs=2) for s in ("propensity", "outcome", "policy")})
SMALL = Models(encoder=GRU(4), training=QUICK)


@pytest.fixture(scope="module")
def world():
    return Clinic(decisions_per_stay=3)


def test_known_propensities_are_used_and_the_truth_stands_beside(world):
    log = world.log(300, seed=0)
    results = evaluate({"random": RandomPolicy().fit(log)}, log, models=SMALL)
    (method,) = results.methods
    assert method.notes["propensities"] == "known, from the data"
    weight = (1 / log.n_actions) / log.logged_propensity
    assert method.estimates[0].estimator == "sndr"
    (snips,) = (e for e in method.estimates if e.estimator == "snips")
    assert snips.risk == pytest.approx((weight * log.logged_loss).sum() / weight.sum())
    assert method.truth == pytest.approx(log.true_expected_loss().mean())


def test_without_propensities_those_of_a_fitted_policy_serve(world):
    train, test = (replace(world.log(150, seed=s), propensity=None) for s in (1, 2))
    policy = PredictiveModel(encoder=GRU(4), training=QUICK).fit(train)
    results = evaluate({"same": RandomPolicy().fit(train), "own": policy}, test, models=SMALL)
    assert {m.notes["propensities"] for m in results.methods} == {
        "fitted with the policy, on its training stays"
    }
    assert results.methods[1].diagnostics.matching_factor == pytest.approx(1, abs=1e-9)


def test_without_any_they_are_cross_fitted_on_the_evaluated_stays(world):
    log = replace(world.log(150, seed=3), propensity=None)
    results = evaluate(MostFrequent().fit(log), log, models=SMALL)
    assert results.methods[0].name == "MostFrequent"
    assert results.methods[0].notes["propensities"] == "cross-fitted on the evaluated stays"


def test_predicted_losses_can_be_left_out(world):
    log = world.log(100, seed=4)
    found = evaluate(RandomPolicy().fit(log), log, models=replace(SMALL, outcome=False))
    names = {e.estimator for e in found.methods[0].estimates}
    assert "snips" in names
    assert "dr" not in names


def test_losses_may_be_predicted_by_a_classifier(world):
    log = world.log(200, seed=5)
    results = evaluate(
        RandomPolicy().fit(log),
        log,
        models=replace(SMALL, outcome=SklearnOutcome(DecisionTreeClassifier(max_depth=2))),
    )
    assert "dr" in {e.estimator for e in results.methods[0].estimates}


def test_results_are_json_of_the_contract_and_the_printed_form_names_the_verdict(world):
    log = world.log(200, seed=7)
    results = evaluate({"clinicians": LoggingPolicy().fit(log)}, log, models=SMALL)
    document = json.loads(canonical(results.to_json()))
    assert set(document) == {"data", "exhibits", "methods", "seconds"}
    (method,) = document["methods"]
    assert {"name", "estimates", "diagnostics", "verdict", "reasons", "truth"} <= set(method)
    assert set(method["estimates"][0]) >= {"estimator", "risk", "std_error", "low", "high"}
    assert set(method["diagnostics"]) == {
        "matching_factor",
        "effective_sample_size",
        "n_matched",
        "clipped_share",
        "max_weight",
    }
    assert method["verdict"] in repr(results)
    assert method["sensitivity"]["bounds"][0]["gamma"] == 1


def test_a_count_of_fewer_than_eleven_is_not_shown(world):
    log = world.log(4, seed=8)  # twelve decisions
    results = evaluate(MostFrequent().fit(log), log, models=replace(SMALL, outcome=False))
    matched = log.logged_action == np.bincount(log.logged_action).argmax()
    assert 0 < matched.sum() < 11
    assert results.methods[0].diagnostics.n_matched is None


def test_the_more_policies_are_tried_the_more_a_gain_has_to_show(world):
    log = world.log(400, seed=9)
    best = {"best": BestPossible().fit(log)}
    many = best | {f"random {i}": RandomPolicy().fit(log) for i in range(9)}
    plain = replace(SMALL, outcome=False)
    alone, crowd = (evaluate(p, log, models=plain).methods[0].gain for p in (best, many))
    assert crowd.adjusted_p == pytest.approx(10 * alone.adjusted_p)
    assert alone.better == (alone.adjusted_p <= 0.05)


def test_evaluate_is_at_hand_in_the_package(world):
    assert etips.evaluate is evaluate


def test_policies_known_by_their_probabilities_are_assessed_alike(world):
    log = world.log(200, seed=10)
    plain = replace(SMALL, outcome=False)
    policies = {"best": BestPossible().fit(log), "random": RandomPolicy().fit(log)}
    whole = evaluate(policies, log, models=plain)
    decisions = Log.of(log)
    chances = {name: policy.predict_proba(log) for name, policy in policies.items()}
    parts = assess_policies(chances, decisions, log)
    for one, other in zip(whole.methods, parts, strict=True):
        assert replace(one, notes=None) == replace(other, notes=None)


def test_results_hold_exhibits_with_the_path_a_policy_remembers(world):
    log = world.log(150, seed=11)
    policy = etips.EtIPS(encoder=GRU(4), training=QUICK, translations=(0.3, 0.7)).fit(log)
    found = evaluate({"own": policy}, log, models=SMALL, settings={"why": "a test"})
    document = json.loads(canonical(found.to_json()))
    assert parse_results(document) == found
    assert [c["translation"] for c in document["exhibits"]["paths"]["own"]][:2] == [0.3, 0.7]
    assert document["exhibits"]["settings"]["why"] == "a test"
    assert document["exhibits"]["seeds"]["evaluation seed"] == 0
    assert document["exhibits"]["calibration"]["used"] is False  # known ones are used instead


def test_a_mean_loss_that_counts_a_few_events_is_hidden_and_so_is_the_gain(world):
    log = world.log(60, seed=12)
    loss = np.zeros(log.n_steps)
    loss[:5] = 1
    few = replace(log, loss=loss, truth=None)
    results = evaluate(RandomPolicy().fit(few), few, models=replace(SMALL, outcome=False))
    document = results.to_json()
    assert document["data"]["n_events"] is None
    assert document["data"]["mean_loss"] is None
    assert set(document["methods"][0]["gain"].values()) == {None}
    assert all(row.n_people is None for table in results.exhibits.subgroups for row in table.rows)
