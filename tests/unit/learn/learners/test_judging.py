"""Candidates judged out of fold: both forms, constants, the clinicians; weight 1 on abstention."""

from dataclasses import replace

import numpy as np
import pytest
from small_worlds import CLEAR, CLINIC, randomised, small, training

from etips.evaluation import logged_risk, snips
from etips.learn import DoublyRobust, EtIPS, KnownPropensity
from etips.learn.fitting.driver import drive
from etips.learn.learners.aims import Aim
from etips.learn.learners.foundation import lay_foundation
from etips.learn.learners.judging import judge_all, settle
from etips.models.encoders.gru import GRU


def foundation(log, **more):
    settings = {"encoder": GRU(6), "training": training(), "seed": 0, "support": 0.0}
    return drive(lay_foundation(log, **(settings | more)))


def test_untrained_policies_that_draw_are_judged_as_the_clinicians():
    base = foundation(CLINIC.log(60, seed=0))
    judged = judge_all(base, base.propensity.bundle, [Aim("translated", 0.5)])
    drawn, likeliest, *constants, clinicians = judged.candidates
    assert (drawn.acts, likeliest.acts) == ("draws", "likeliest")
    assert drawn.risk == pytest.approx(clinicians.risk, abs=1e-5)
    assert likeliest.risk != pytest.approx(clinicians.risk, abs=1e-3)
    assert [c.action for c in constants] == [0, 1, 2]


def test_the_likeliest_action_is_judged_by_those_who_got_it():
    log = CLINIC.log(60, seed=0)
    base = foundation(log)
    likeliest = judge_all(base, base.propensity.bundle, [Aim("translated", 0.5)]).candidates[1]
    got = base.propensity.log_probabilities.argmax(axis=1) == log.logged_action
    wanted = snips(log.logged_loss, got / base.chance, log.cluster)
    assert (likeliest.risk, likeliest.std_error) == pytest.approx((wanted.risk, wanted.std_error))


def test_where_a_policy_abstains_its_weight_is_one():
    """With known propensities, too: the fitted ones over the known would not be 1."""
    log = CLINIC.log(80, seed=0)
    base = foundation(log, model=KnownPropensity(), support=0.999)
    drawn, likeliest, clinicians = judge_all(
        base, base.propensity.bundle, [Aim("translated", 0.5)]
    ).candidates
    assert clinicians.clinicians
    for own in (drawn, likeliest):
        assert own.risk == pytest.approx(log.logged_loss.mean())
        assert own.matching_factor == pytest.approx(1)


def test_errors_are_by_patient():
    log = CLINIC.log(80, seed=0)
    several = replace(log, group=np.arange(80) // 8)
    errors = []
    for data in (log, several):
        base = foundation(data, training=training(n_folds=4))
        own = judge_all(base, base.propensity.bundle, [Aim("translated", 0.5)]).candidates[-1]
        errors.append(own.std_error)
        wanted = logged_risk(data.logged_loss, data.cluster).std_error
        assert own.std_error == pytest.approx(wanted)
    assert errors[0] != pytest.approx(errors[1], rel=1e-3)


def test_the_chosen_candidate_alone_has_a_corrected_risk():
    base = foundation(CLINIC.log(60, seed=0))
    path = settle(
        base, judge_all(base, base.propensity.bundle, [Aim("translated", 0.5)]), "held-out"
    )
    assert [c.corrected is not None for c in path] == [c.chosen for c in path]
    alone = foundation(CLINIC.log(60, seed=0), training=training(n_folds=1))
    path = settle(
        alone, judge_all(alone, alone.propensity.bundle, [Aim("translated", 0.5)]), "held-out"
    )
    assert all(c.corrected is None for c in path)


def test_a_doubly_robust_policy_says_which_form_it_takes():
    learner = DoublyRobust(encoder=GRU(8), training=training(8, 3)).fit(CLEAR.log(600, seed=0))
    chosen = next(c for c in learner.path_ if c.chosen)
    assert chosen.is_rule
    assert learner.policy_.acts == chosen.acts
    assert chosen.risk < learner.path_[-1].risk


@pytest.mark.parametrize("n_actions", [4, 20, 80])
def test_in_a_randomised_log_nothing_abstains_everywhere(n_actions):
    """With 80 even actions a constant was chosen at a floor that the policy never reached."""
    log = randomised(1000, n_actions)
    lucky = (log.logged_action == 3) & (np.arange(1000) % 7 > 0)
    log = replace(log, loss=np.where(lucky, 0.0, 1.0))
    learner = EtIPS(**small(translations=(0.5,))).fit(log)
    assert next(c for c in learner.path_ if c.chosen).action == 3 or n_actions == 80
    assert learner.abstains(log).mean() <= 0.05
    fresh = randomised(300, n_actions, seed=9)
    assert learner.abstains(fresh).mean() <= 0.05
