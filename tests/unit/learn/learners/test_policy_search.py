"""Policy networks are judged by those that did not learn from a stay, and one variant is kept."""

from dataclasses import replace

import numpy as np
import pytest
from small_worlds import CLINIC, small, training

from etips.evaluation import snips
from etips.learn import EtIPS, KnownPropensity
from etips.learn.fitting.trainer import Trainer
from etips.learn.learners.policy_objectives import Variant
from etips.learn.learners.policy_search import judge_variants
from etips.learn.nuisance.fitted_nuisances import fit_nuisances
from etips.models.encoders.gru import GRU


def foundation(log, **more):
    settings = {"encoder": GRU(6), "training": training(), "seed": 0, "support": 0.0}
    return fit_nuisances(log, Trainer(), **(settings | more))


def judged(base, **more):
    """The clinicians' own networks, judged as a policy."""
    return judge_variants(
        base, base.propensity.bundle, [Variant("translated", 0.5)], **more
    ).candidates[0]


def test_untrained_policies_that_draw_are_judged_as_the_clinicians():
    log = CLINIC.log(60, seed=0)
    drawn = judged(foundation(log), draws=True)
    assert drawn.risk == pytest.approx(log.logged_loss.mean(), abs=1e-5)


def test_the_likeliest_action_is_judged_by_those_who_got_it():
    log = CLINIC.log(60, seed=0)
    base = foundation(log)
    got = base.propensity.log_probabilities.argmax(axis=1) == log.logged_action
    wanted = snips(log.logged_loss, got / base.chance, log.cluster)
    found = judged(base)
    assert (found.risk, found.std_error) == pytest.approx((wanted.risk, wanted.std_error))


@pytest.mark.parametrize("draws", [False, True])
def test_where_a_policy_abstains_its_weight_is_one(draws):
    """With known propensities, too: the fitted ones over the known would not be 1."""
    log = CLINIC.log(80, seed=0)
    found = judged(foundation(log, model=KnownPropensity(), support=0.999), draws=draws)
    assert found.risk == pytest.approx(log.logged_loss.mean())
    assert found.matching_factor == pytest.approx(1)


def test_errors_are_by_patient():
    log = CLINIC.log(80, seed=0)
    errors = []
    for data in (log, replace(log, group=np.arange(80) // 8)):
        base = foundation(data, training=training(n_folds=4))
        got = base.propensity.log_probabilities.argmax(axis=1) == data.logged_action
        errors.append(judged(base).std_error)
        wanted = snips(data.logged_loss, got / base.chance, data.cluster)
        assert errors[-1] == pytest.approx(wanted.std_error)
    assert errors[0] != pytest.approx(errors[1], rel=1e-3)


def test_without_folds_no_risk_is_corrected():
    learner = EtIPS(**small(training=training(n_folds=1)), translations=(0.3, 0.5))
    assert all(c.corrected is None for c in learner.fit(CLINIC.log(60, seed=0)).path_)


def test_the_paper_takes_the_least_risk_of_policies_that_draw():
    learner = EtIPS(**small(translations=(0.3, 0.5), selection="paper")).fit(CLINIC.log(60, seed=0))
    assert learner.policy_.acts == "likeliest"
    chosen = next(c for c in learner.path_ if c.chosen)
    assert chosen.risk == min(c.risk for c in learner.path_)
    assert [c.corrected is not None for c in learner.path_] == [c.chosen for c in learner.path_]
