"""A regression of the loss in the folds of the networks, and as the policy where it wins."""

from dataclasses import replace

import numpy as np
import pytest
from small_worlds import CLINIC, habitual, small, training

import etips
from etips.data.intake.recipe import Recipe
from etips.learn import DoublyRobust, EtIPS
from etips.learn.fitting.candidates import REGRESSION
from etips.learn.fitting.driver import drive
from etips.learn.fitting.prepare import prepare
from etips.learn.learners import regression
from etips.learn.learners.foundation import choose_device
from etips.learn.learners.regression import fit_regression
from etips.learn.nuisance.support import LOWEST, SUPPORT
from etips.models.row_model import rows_of
from etips.worlds.clinic import Clinic

LINEAR = Clinic(overlap=0.5, n_actions=3, n_features=4, world=11)


def prepared(log, n_folds=3):
    return prepare(log, n_folds=n_folds, seed=0, device=choose_device("cpu"))


def test_what_is_said_of_a_fold_does_not_know_its_losses():
    log = CLINIC.log(120, seed=0)
    ready = prepared(log)
    first = ready.folds.fold[log.decisions().stay] == 0
    loss = log.loss.copy()
    loss[log.decision_rows[first]] = 1 - loss[log.decision_rows[first]]
    plain, moved = fit_regression(ready), fit_regression(prepared(replace(log, loss=loss)))
    assert moved.expected[first] == pytest.approx(plain.expected[first])
    assert moved.expected[~first] != pytest.approx(plain.expected[~first], abs=1e-3)


def test_its_model_says_what_was_judged():
    log = CLINIC.log(60, seed=0)
    ready = prepared(log)
    found = fit_regression(ready)
    fold = ready.folds.fold[log.decisions().stay]
    said = found.model.outputs(rows_of(log, "summary"))
    assert said[fold, np.arange(log.n_decisions)] == pytest.approx(found.expected, abs=1e-5)


def test_the_least_loss_is_looked_for_among_allowed_actions():
    found = fit_regression(prepared(CLINIC.log(60, seed=0)))
    allowed = np.ones_like(found.expected, bool)
    best = found.least(allowed)
    allowed[np.arange(len(best)), best] = False
    second = found.least(allowed)
    assert (second != best).all()
    rows = np.arange(len(best))
    assert (found.expected[rows, second] >= found.expected[rows, best]).all()


def test_a_large_log_is_left_to_networks(monkeypatch):
    monkeypatch.setattr(regression, "MOST_DECISIONS", 100)
    assert fit_regression(prepared(CLINIC.log(60, seed=0))) is None


@pytest.mark.parametrize("learner", [EtIPS, DoublyRobust])
def test_few_stays_that_follow_a_line_are_learned_by_it(learner, tmp_path):
    """Networks that learn for two epochs stay with the clinicians; saved, it answers the same."""
    train, test = LINEAR.log(400, seed=0), LINEAR.log(800, seed=1)
    more = {"translations": (0.5,)} if learner is EtIPS else {}
    fitted = {
        others: learner(**small(training=training(2, 3, finish=False)), others=others, **more).fit(
            train
        )
        for others in (True, False)
    }
    policy = fitted[True].policy_
    assert next(c for c in fitted[True].path_ if c.chosen).form == "regression"
    risks = {
        others: test.true_risk(own.policy_.deployed(test).left_to(test.true_logging()))
        for others, own in fitted.items()
    }
    assert risks[True] < risks[False] - 0.01
    fitted[True].save(tmp_path / "policy")
    again = etips.load(tmp_path / "policy")
    assert again.predict_proba(test) == pytest.approx(policy.predict_proba(test))


def test_it_answers_data_that_say_less_of_what_may_be_missing():
    """A table knows that any feature may be missing, a simulation that none is."""
    log = LINEAR.log(300, seed=0)
    told = replace(log.schema, recipe=Recipe(missing="carry"))
    learner = DoublyRobust(**small(training=training(2, 3, finish=False))).fit(
        replace(log, schema=told)
    )
    assert next(c for c in learner.path_ if c.chosen).form == "regression"
    fresh = LINEAR.log(50, seed=1)
    said = learner.predict_proba(replace(fresh, schema=told))
    assert learner.predict_proba(fresh) == pytest.approx(said)


@pytest.mark.parametrize(
    ("gain", "set_to", "floor"),
    [(0.85, None, LOWEST), (0.85, 0.05, None), (0.4, None, None), (0.0, None, None)],
)
def test_rare_actions_may_be_recommended_where_they_gain_more_than_something_hidden_explains(
    gain, set_to, floor
):
    """With a gain of 0.4 all that is promised comes true; a floor that somebody set stays."""
    learner = EtIPS(**small(training=training(2)))
    laid = learner._lay_foundation(habitual(12_000, gain=gain), support=set_to, regression=True)
    assert drive(laid).regression().floor == floor


@pytest.mark.parametrize("learner", [EtIPS, DoublyRobust])
def test_a_few_who_got_a_rare_action_do_not_lower_the_floor(learner):
    """The best action is rare for many, and the log is too small to bear anything hidden."""
    clinic = Clinic(overlap=0.1, n_actions=3, n_features=4, effect=0.9, world=4)
    more = {"translations": (0.5,), "others": True} if learner is EtIPS else {}
    own = learner(**small(training=training(4, 3)), **more).fit(clinic.log(600, seed=0))
    assert next(c for c in own.path_ if c.chosen).form == REGRESSION
    assert own.policy_.support == SUPPORT[0]
