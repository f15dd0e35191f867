"""The direct method: least predicted loss, with and without interaction, on any scale of loss."""

from dataclasses import replace

import numpy as np
import pytest
from small_worlds import CLEAR, CLINIC, gain_in_a_clear_world, small, training

from etips.data.tables.arrays import from_arrays
from etips.errors import SettingError
from etips.learn import DirectMethod, StayDirectMethod
from etips.models.encoders.gru import GRU


def crossed(n=300, scale=1.0, shift=0.0, seed=0):
    """A trial in which the sign of one feature says which of two arms is better."""
    rng = np.random.default_rng(seed)
    features, action = rng.normal(size=(n, 2)), rng.integers(0, 2, n)
    worse = (features[:, 0] > 0) == (action == 1)
    return from_arrays(features, action, shift + scale * worse.astype(float)), features


def test_it_learns_whom_each_action_serves():
    log, features = crossed()
    learner = DirectMethod(**small(training=training(15, 2))).fit(log)
    assert (learner.predict(log) == (features[:, 0] < 0)).mean() > 0.9


@pytest.mark.parametrize(("scale", "shift"), [(100.0, 300.0), (1e-3, -5.0), (1e6, 0.0)])
def test_a_loss_on_any_scale_is_learned_as_well(scale, shift):
    log, features = crossed(scale=scale, shift=shift)
    learner = DirectMethod(**small(training=training(15, 2))).fit(log)
    assert (learner.predict(log) == (features[:, 0] < 0)).mean() > 0.9
    assert learner.policy_.kind == "least amount"


def test_it_beats_the_clinicians_of_a_clear_world():
    assert gain_in_a_clear_world(DirectMethod(encoder=GRU(8), training=training(10, 2))) > 0.03


def test_a_recommendation_is_certain():
    log = CLINIC.log(60, seed=0)
    found = DirectMethod(**small()).fit(log).predict_proba(log)
    assert set(np.unique(found)) == {0.0, 1.0}


@pytest.mark.parametrize("seed", range(6))
def test_without_interaction_everybody_gets_the_same_action(seed):
    """The paper's direct method: the ranking of the actions cannot depend on the history."""
    log = CLEAR.log(60, seed=seed)
    learner = DirectMethod(interaction=False, **small(seed, support=0.0)).fit(log)
    assert len(np.unique(learner.predict(log))) == 1


def test_without_interaction_no_networks_are_trained_that_are_not_used(trained):
    stages = []
    learner = DirectMethod(interaction=False, **small(support=0.0))
    learner.fit(CLINIC.log(30, seed=0), report=lambda at: stages.append(at.stage))
    assert set(stages) == {"propensity", "additive"}
    assert trained == [2, 2]


def test_without_interaction_networks_that_disagree_still_give_one_answer():
    """Chances of several networks, averaged, would rank the actions by the history after all."""
    log = CLEAR.log(60, seed=0)
    learner = DirectMethod(interaction=False, **small(support=0.0)).fit(log)
    networks = learner.policy_.networks
    shapes = networks.parameters["head.weight"].shape
    head = np.random.default_rng(0).normal(size=shapes).astype(np.float32) * 4
    bias = np.array([[0.0, -1.0, 5.0], [0.0, 0.9, 5.0]], np.float32)
    changed = {k: v.clone() for k, v in networks.parameters.items()}
    changed["head.weight"][:] = changed["head.weight"].new_tensor(head)
    changed["head.bias"][:] = changed["head.bias"].new_tensor(bias)
    policy = replace(learner.policy_, networks=replace(networks, parameters=changed))
    assert (policy.predict(log) == 1).all()
    bent = replace(policy, kind="least loss").predict(log)
    assert len(np.unique(bent)) > 1  # what would have happened


def test_with_interaction_it_may_differ_from_patient_to_patient():
    log, _ = crossed()
    learner = DirectMethod(**small(training=training(15, 2))).fit(log)
    assert len(np.unique(learner.predict(log))) == 2


def test_it_keeps_how_well_the_propensities_fit():
    learner = DirectMethod(**small()).fit(CLINIC.log(60, seed=0))
    assert 0 <= learner.quality_.accuracy <= 1
    assert learner.quality_.log_loss > 0
    assert learner.support_ in (0.0, 0.05)


def debts(n_stays=200, seed=0):
    """Action 1 saves half a point now and costs one at the next of three decisions."""
    rng = np.random.default_rng(seed)
    action = rng.integers(0, 2, (n_stays, 3))
    debt = np.concatenate([np.zeros((n_stays, 1), int), action[:, :-1]], axis=1)
    return from_arrays(debt[..., None].astype(float), action, 0.5 - 0.5 * action + debt)


def looking(epochs=15, **more):
    return DirectMethod(encoder=GRU(8), training=training(epochs, 2), support=0.0, **more)


def test_a_policy_that_looks_ahead_waits_where_the_next_loss_would_tempt_it():
    log = debts()
    number = log.decisions().step
    tempted = looking().fit(log).predict(log)
    assert (tempted == 1).all()
    patient = looking(horizon="stay").fit(log)
    chosen = patient.predict(log)
    assert (chosen[number < 2] == 0).mean() > 0.95
    assert (chosen[number == 2] == 1).mean() > 0.95
    assert patient.fit_.outcome is None  # outcomes of stays are no predicted losses
    assert patient.policy_.kind == "least amount"


def test_held_out_stays_say_what_looking_ahead_is_worth():
    log = debts()
    candidate = looking(horizon="stay").fit(log).fit_.whole_stay
    assert candidate.risk == pytest.approx(1.0, abs=0.15)  # the log has 0.25 + 2 * 0.75 = 1.75
    assert candidate.chosen
    assert candidate.effective_size > 10
    assert looking().fit(log).fit_.whole_stay is None


def test_the_last_loss_alone_may_count():
    log = debts()
    last = looking(horizon="stay", outcome="last").fit(log)
    number, chosen = log.decisions().step, last.predict(log)
    assert (chosen[number == 1] == 0).mean() > 0.95
    assert (chosen[number == 2] == 1).mean() > 0.95
    assert last.fit_.whole_stay.risk == pytest.approx(0.0, abs=0.1)


def test_one_decision_ahead_is_the_default_and_trains_what_it_did(trained):
    stages = []
    learner = DirectMethod(**small(support=0.0))
    learner.fit(CLINIC.log(30, seed=0), report=lambda at: stages.append(at.stage))
    assert set(stages) == {"propensity", "outcome"}
    assert trained == [2, 2]


def test_the_method_of_stays_is_the_direct_method_looking_ahead():
    made = StayDirectMethod(outcome="last")
    assert (type(made), made.horizon, made.outcome) == (DirectMethod, "stay", "last")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"horizon": "week"}, "horizon: must be decision or stay"),
        ({"horizon": "stay", "outcome": "mean"}, "outcome: must be sum or last"),
        ({"horizon": "stay", "interaction": False}, "interaction: must be true where"),
    ],
)
def test_a_horizon_that_there_is_not_is_refused(settings, words):
    with pytest.raises(SettingError, match=f"^{words}"):
        DirectMethod(**settings).fit(CLINIC.log(10, seed=0))
