"""Policies of several aims: judged by networks that did not learn from a stay, one of them kept."""

import math
from dataclasses import replace

import numpy as np
import pytest
from small_worlds import CLEAR, CLINIC, small, training

from etips.evaluation import snips
from etips.learn import EtIPS, KnownPropensity, Settings
from etips.learn.fitting.trainer import Trainer
from etips.learn.learners.policy_objectives import Aim
from etips.learn.learners.policy_search import PolicySearch
from etips.learn.nuisance.fitted_nuisances import fit_nuisances
from etips.models.encoders.gru import GRU

AIMS = [*(Aim("translated", value) for value in (0.3, 0.5, 0.7)), Aim("beta-IPS")]


@pytest.fixture(scope="module")
def base():
    learner = EtIPS(**small(training=training(6)))
    return learner._fit_nuisances(CLEAR.log(200, seed=0), Trainer(), support=0.0)


def foundation(log, **more):
    settings = {"encoder": GRU(6), "training": training(), "seed": 0, "support": 0.0}
    return fit_nuisances(log, Trainer(), **(settings | more))


def starts(base, n_sets):
    bundle = base.propensity.bundle
    return bundle.select(list(range(bundle.n_members)) * n_sets)


def search(base, aims, epochs=6, **more):
    settings = Settings(epochs=epochs, batch_size=64, learning_rate=0.02)
    return PolicySearch(base, aims, starts(base, len(aims)), settings, kl=0.01, **more)


def judged(base, **more):
    """The clinicians' own networks, judged as a policy."""
    return (
        search(base, [Aim("translated", 0.5)], **more).judge(base.propensity.bundle).candidates[0]
    )


def test_the_path_says_what_each_candidate_was_trained_by(base):
    path = search(base, AIMS).run(Trainer()).path
    assert [c.form for c in path] == ["translated", "translated", "translated", "beta-IPS"]
    assert all(math.isnan(c.strength) for c in path)
    assert sum(c.chosen for c in path) == 1
    assert [c.corrected is not None for c in path] == [c.chosen for c in path]


def test_aims_of_other_kinds_beside_them_do_not_change_what_networks_become(base):
    alone, beside = (search(base, aims).run(Trainer()).path[:3] for aims in (AIMS[:3], AIMS))
    assert [c.risk for c in beside] == pytest.approx([c.risk for c in alone], abs=1e-5)


def test_the_paper_judges_draws_and_takes_the_likeliest_action(base):
    fit = search(base, AIMS[:2], selection="paper").run(Trainer())
    assert fit.policy.acts == "likeliest"
    assert next(c for c in fit.path if c.chosen).risk == min(c.risk for c in fit.path)


def test_untrained_policies_that_draw_are_judged_as_the_clinicians():
    log = CLINIC.log(60, seed=0)
    drawn = judged(foundation(log), selection="paper")
    assert drawn.risk == pytest.approx(log.logged_loss.mean(), abs=1e-5)


def test_the_likeliest_action_is_judged_by_those_who_got_it():
    log = CLINIC.log(60, seed=0)
    base = foundation(log)
    got = base.propensity.log_probabilities.argmax(axis=1) == log.logged_action
    wanted = snips(log.logged_loss, got / base.chance, log.cluster)
    found = judged(base)
    assert (found.risk, found.std_error) == pytest.approx((wanted.risk, wanted.std_error))


@pytest.mark.parametrize("selection", ["held-out", "paper"])
def test_where_a_policy_abstains_its_weight_is_one(selection):
    """With known propensities, too: the fitted ones over the known would not be 1."""
    log = CLINIC.log(80, seed=0)
    found = judged(foundation(log, model=KnownPropensity(), support=0.999), selection=selection)
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
    alone = foundation(CLINIC.log(60, seed=0), training=training(n_folds=1))
    path = search(alone, AIMS[:2], 1).run(Trainer()).path
    assert all(c.corrected is None for c in path)
