"""Evaluating policies and rules end to end."""

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
from etips.learn.nuisance.outcome import SklearnOutcome
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


def test_the_order_of_the_policies_changes_no_figure(world):
    """S12: propensities are fitted anew, not taken from whoever comes first."""
    train, test = (replace(world.log(150, seed=s), propensity=None) for s in (1, 2))
    one = PredictiveModel(encoder=GRU(4), training=QUICK).fit(train)
    other = etips.DirectMethod(encoder=GRU(4), training=QUICK, seed=3).fit(train)
    policies = {"one": one, "other": other, "random": RandomPolicy().fit(train)}
    turned = dict(reversed(policies.items()))
    first, second = (evaluate(p, test, models=SMALL) for p in (policies, turned))
    (source,) = {m.notes["propensities"] for m in first.methods}
    assert source.startswith("cross-fitted on the evaluated stays")
    by_name = {m.name: m for m in second.methods}
    assert all(by_name[m.name] == m for m in first.methods)


def test_what_is_recommended_is_what_is_judged_and_the_probabilities_stand_beside(world):
    """S12: one headline, of what is done."""
    train, test = world.log(150, seed=1), world.log(150, seed=2)
    fitted = PredictiveModel(encoder=GRU(4), training=QUICK).fit(train).policy_
    likeliest = replace(fitted, kind="softmax", networks=fitted.propensity, acts="likeliest")
    draws = replace(likeliest, acts="draws")
    found = evaluate({"likeliest": likeliest, "draws": draws}, test, models=SMALL)
    sure, drawn = found.methods
    assert sure.truth == pytest.approx(test.true_risk(np.eye(5)[likeliest.predict(test)]))
    assert drawn.truth == pytest.approx(test.true_risk(likeliest.predict_proba(test)))
    assert sure.as_probabilities == drawn.estimates[0]
    assert drawn.as_probabilities is None
    assert sure.estimates[0] != drawn.estimates[0]


def test_a_policy_of_which_nothing_else_is_known_is_its_probabilities(world):
    class Plain:
        def predict_proba(self, data):
            return data.true_logging() ** 2 / (data.true_logging() ** 2).sum(1, keepdims=True)

    log = world.log(100, seed=2)
    (method,) = evaluate(Plain(), log, models=replace(SMALL, outcome=False)).methods
    assert method.as_probabilities is None
    assert method.truth == pytest.approx(log.true_risk(Plain().predict_proba(log)))


def test_where_a_policy_abstains_the_clinicians_decide(world):
    """Weight 1 there whatever the networks say, the clinicians' own truth, and no bound moves."""
    train, test = world.log(150, seed=1), world.log(200, seed=2)
    clinicians = PredictiveModel(encoder=GRU(4), training=QUICK).fit(train).policy_
    never = replace(clinicians, kind="constant", constant=1, support=0.99)
    some = replace(never, support=float(np.median(clinicians.propensities(test)[:, 1])))
    found = evaluate({"never": never, "some": some}, test, models=replace(SMALL, outcome=False))
    silent, half = found.methods
    assert never.abstains(test).all()
    assert silent.estimates[0].risk == pytest.approx(test.logged_loss.mean())
    assert silent.truth == pytest.approx(test.true_risk(test.true_logging()))
    assert silent.diagnostics.max_weight == 1
    away = some.abstains(test)
    assert 0 < away.mean() < 1
    right = np.where(away[:, None], test.true_logging(), np.eye(5)[1])
    assert half.truth == pytest.approx(test.true_risk(right))
    weight = np.where(away, 1.0, (test.logged_action == 1) / test.logged_propensity)
    snips = next(e for e in half.estimates if e.estimator == "snips")
    assert snips.risk == pytest.approx((weight * test.logged_loss).sum() / weight.sum())


def test_stays_that_were_learned_from_are_refused_or_marked(world):
    """S11: silently accepted before."""
    log = world.log(150, seed=1)
    policies = {"own": MostFrequent().fit(log), "random": RandomPolicy().fit(log)}
    plain = replace(SMALL, outcome=False)
    refusal = (
        r"^data: must be unseen; the policy own learned from all of the stays\. "
        r"Evaluate on others: `etips fit --hold-out 0\.3` \(etips\.split\) keeps some apart; "
        r"allow_seen=True \(--allow-seen\) judges it in sample\.$"
    )
    with pytest.raises(etips.DataError, match=refusal):
        evaluate(policies, log, models=plain)
    own, random = evaluate(policies, log, models=plain, allow_seen=True).methods
    assert (own.in_sample, random.in_sample) == (True, False)
    assert own.notes["evaluated stays"].startswith("IN SAMPLE")
    held = evaluate(policies, world.log(150, seed=2), models=plain)
    assert not any(m.in_sample for m in held.methods)


def test_better_alone_is_said_where_a_stay_is_one_decision():
    for decisions, better in ((1, True), (3, False)):
        log = Clinic(decisions_per_stay=decisions).log(900, seed=9)
        gain = evaluate(BestPossible().fit(log), log, models=replace(SMALL, outcome=False))
        assert gain.data.one_decision == better
        assert gain.methods[0].gain.better_at_one_decision
        assert gain.methods[0].gain.better == better


def test_what_nobody_can_look_at_is_refused(world):
    log = world.log(20, seed=0)
    for wrong in ({"horizon": "week"}, {"outcome": "mean"}):
        with pytest.raises(etips.SettingError, match=r"^(horizon|outcome): must be one of "):
            evaluate(RandomPolicy().fit(log), log, models=SMALL, **wrong)


def test_without_any_they_are_cross_fitted_on_the_evaluated_stays(world):
    train, log = (replace(world.log(150, seed=s), propensity=None) for s in (13, 3))
    results = evaluate(MostFrequent().fit(train), log, models=SMALL)
    assert results.methods[0].name == "MostFrequent"
    assert results.methods[0].notes["propensities"].startswith("cross-fitted on the evaluated")


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
    assert set(document) == {"data", "exhibits", "methods", "seconds", "shift"}
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
    policy = MostFrequent().fit(log)
    plain = replace(SMALL, outcome=False)
    results = evaluate(policy, log, models=plain, allow_seen=True)
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
    assert alone.better_at_one_decision == (alone.adjusted_p <= 0.05)


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
    train, log = (world.log(150, seed=s) for s in (10, 11))
    policy = etips.EtIPS(encoder=GRU(4), training=QUICK, translations=(0.3, 0.7)).fit(train)
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


@pytest.mark.parametrize("people", [10, 11])
def test_what_became_of_fewer_than_eleven_people_is_not_told(world, people):
    """Stays of one patient count once."""
    log = world.log(2 * people, seed=4)
    log = replace(log, group=np.arange(2 * people) // 2, truth=None)
    results = evaluate(RandomPolicy().fit(log), log, models=replace(SMALL, outcome=False))
    (method,) = results.methods
    told = [own.risk for own in method.estimates] + [own.high for own in method.estimates]
    assert all(value is None for value in told) == (people < 11)
    assert (method.atenp.difference is None) == (people < 11)
    assert any("fewer than eleven people" in reason for reason in method.reasons) == (people < 11)
    assert str(results)


@pytest.fixture(scope="module")
def log():
    return Clinic(decisions_per_stay=3).log(300, seed=0)


@pytest.fixture(scope="module")
def feature(log):
    return log.schema.sequence[0]


def test_a_rule_in_python_and_the_same_in_sql_have_the_same_results(log, feature):
    python = etips.Rule(lambda s: 1 if s[feature] > 0 else None, name="python")
    sql = etips.SqlRule("sql", f'case when "{feature}" > 0 then 1 end')
    found = evaluate([python, sql], log, models=SMALL)
    first, second = found.methods
    assert first.estimates == second.estimates
    assert first.gain.difference == second.gain.difference
    assert second.notes["rule"] == sql.text
    assert second.notes["evaluated stays"] == "nobody was learned from"
    assert sql.text in second.sentence
    answers = np.where(log.sequence[log.seen_rows][:, 0] > 0, 1, -1)
    left = np.where((answers == -1)[:, None], log.true_logging(), np.eye(5)[answers])
    assert second.truth == pytest.approx(log.true_risk(left))


def test_where_it_abstains_the_clinicians_decide_and_nothing_is_gained(log):
    (method,) = evaluate(lambda s: None, log, models=replace(SMALL, outcome=False)).methods
    assert method.name == "rule"
    assert method.gain.difference == 0
    assert method.estimates[0].risk == pytest.approx(log.logged_loss.mean())


def test_a_rule_stands_beside_learned_policies_over_whole_stays(log, feature):
    rule = etips.SqlRule("random", f'case when "{feature}" > 0 then 1 else 0 end')
    found = evaluate([rule, RandomPolicy().fit(log)], log, models=SMALL, horizon="stay")
    assert [method.name for method in found.methods] == ["random", "RandomPolicy"]
    assert all(method.whole_stay is not None for method in found.methods)
    assert found.methods[0].label is None  # it is called like a method, and is none
    assert found.exhibits.headline == "random"
