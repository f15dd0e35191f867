"""How a trial is scored: by stays that its networks did not learn from."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from small_searches import QUICK
from small_worlds import CLINIC

from etips.data.splitting import assign_folds
from etips.learn.fitting.candidates import estimate_candidate
from etips.learn.learners.recipes import Recipe
from etips.studies.trials import REFITS, TrialsTask, read_trials, score_trial


@pytest.fixture(scope="module")
def log():
    return CLINIC.log(60, seed=0)


@pytest.mark.parametrize("corrected", [None, 0.2])
def test_a_learner_with_candidates_is_judged_by_what_its_choosing_comes_to(log, corrected):
    recipe = Recipe("etips", {**QUICK, "translations": [0.3, 0.7]})
    learner = recipe.make(device="cpu").fit(log)
    *others, last = (replace(candidate, chosen=False) for candidate in learner.path_)
    error = None if corrected is None else 0.05
    own = replace(
        last, chosen=True, risk=0.123, std_error=0.01, corrected=corrected, corrected_error=error
    )
    learner.path_ = (*others, own)
    found = score_trial(recipe, learner, log)
    risks = (0.123, 0.01, None) if corrected is None else (0.2, 0.05, 0.123)
    assert (found.risk, found.std_error, found.naive) == risks
    assert found.sound == own.sound
    assert found.log_loss == learner.quality_.log_loss
    json.dumps(asdict(found), allow_nan=False)


def test_any_other_is_judged_by_networks_that_did_not_learn_from_the_stay(log):
    """As the policy is followed; stays of a patient count as one."""
    patients = np.array([f"p{number // 3}" for number in range(log.n_stays)])
    data = replace(log, propensity=None, group=patients)
    recipe = Recipe("direct", {**QUICK, "support": 0.0})
    learner = recipe.make(device="cpu").fit(data)
    found = score_trial(recipe, learner, data)
    assert found.log_loss == pytest.approx(learner.quality_.log_loss, rel=1e-5)
    policy = learner.policy_  # once more by hand
    fold = assign_folds(data, n_folds=2, seed=0)
    chosen, chance = np.empty(data.n_decisions), np.empty(data.n_decisions)
    for k in range(2):
        part = data.subset(fold == k)
        inside = fold[data.decisions().stay] == k
        own = replace(
            policy, networks=policy.networks.select([k]), propensity=policy.propensity.select([k])
        )
        row = np.arange(part.n_decisions)
        chosen[inside] = own.predict(part) == part.logged_action
        chance[inside] = own.propensities(part)[row, part.logged_action]
    expected = estimate_candidate(chosen, np.maximum(chance, 0.01), data.logged_loss, data.cluster)
    assert found.std_error == pytest.approx(expected.std_error)
    assert found.risk == pytest.approx(expected.risk)
    assert found.matching_factor == pytest.approx(expected.matching_factor)


def test_known_propensities_serve_where_there_are_some(log):
    recipe = Recipe("direct", QUICK)
    learner = recipe.make(device="cpu").fit(log)
    assert score_trial(recipe, learner, log).log_loss is None
    assert score_trial(recipe, learner, replace(log, propensity=None)).log_loss > 0


def test_who_looks_ahead_is_judged_by_the_outcome_of_stays(log):
    recipe = Recipe("direct-stay", QUICK)
    learner = recipe.make(device="cpu").fit(log)
    found = score_trial(recipe, learner, log)
    assert found.risk == learner.fit_.whole_stay.risk
    per_stay = log.logged_loss.sum() / log.n_stays
    assert found.risk == pytest.approx(per_stay, rel=0.5)  # of a sum, not of one loss


def test_an_imitation_is_judged_by_how_well_it_imitates(log):
    recipe = Recipe("predictive", QUICK)
    learner = recipe.make(device="cpu").fit(log)
    found = score_trial(recipe, learner, log)
    assert found.risk == pytest.approx(learner.quality_.log_loss, rel=1e-5)
    assert found.sound


def test_a_task_of_trials_finds_a_record_each(log, tmp_path):
    rates = ({**QUICK, "learning_rate": 0.01}, {**QUICK, "learning_rate": 0.02})
    work = TrialsTask(search="s", method="direct", settings=rates, seed=0, device="cpu")
    log.save(tmp_path / "data")
    (tmp_path / "trial-0000").mkdir()
    records = read_trials(json.loads(json.dumps(work.run(tmp_path / "trial-0000"))))
    assert len(records) == 2
    recipe = Recipe("direct", rates[1])
    alone = score_trial(recipe, recipe.make(device="cpu").fit(log), log)
    assert records[1].risk == pytest.approx(alone.risk, rel=1e-4)


def test_a_learner_without_folds_of_its_own_is_fitted_anew_without_each_fold(log):
    data = replace(log, propensity=None)
    recipe = Recipe("q-learning", {"support": 0.0})
    found = score_trial(recipe, recipe.make().fit(data), data)
    fold = assign_folds(data, n_folds=REFITS, seed=0)
    taken, chance = np.empty(data.n_decisions), np.empty(data.n_decisions)
    for k in range(REFITS):
        own = recipe.make().fit(data.subset(fold != k))
        part, inside = data.subset(fold == k), fold[data.decisions().stay] == k
        row = np.arange(part.n_decisions)
        taken[inside] = own.deployed(part).probabilities[row, part.logged_action]
        chance[inside] = own.policy_.propensities(part)[row, part.logged_action]
    by_hand = estimate_candidate(taken, chance, data.logged_loss, data.cluster)
    assert found.risk == pytest.approx(by_hand.risk)
    assert found.log_loss == pytest.approx(-np.log(chance).mean())
