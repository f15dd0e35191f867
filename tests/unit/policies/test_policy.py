"""What a fitted policy does with outputs, support, earlier actions and foreign data."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from small_worlds import CLINIC, small, training, ward

from etips.errors import DataError
from etips.learn import DoublyRobust
from etips.policies.deployed import Deployed, draw_from, take_likeliest
from etips.policies.policy import Answer, FittedPolicy


@pytest.fixture(scope="module")
def learner():
    return DoublyRobust(**small(support=0.0)).fit(ward())


@pytest.fixture(scope="module")
def reader():
    """A policy whose networks read the newest earlier action."""
    return DoublyRobust(**small(training=training(earlier_actions=True))).fit(ward())


def combined(kind, outputs, allowed):
    """Probabilities of a policy whose networks say this, within what clinicians do."""
    propensities = allowed.double() / allowed.sum(-1, keepdim=True)
    policy = FittedPolicy(kind, CLINIC.log(1, seed=0).schema, support=0.1)
    return policy.decide(propensities, outputs)[0]


def test_softmax_policies_are_averaged_in_probability():
    outputs = torch.tensor([[[0.0, 0.0, 50.0]], [[200.0, 0.0, 0.0]]], dtype=torch.float64)
    found = combined("softmax", outputs, torch.ones(1, 3, dtype=torch.bool))
    assert found[0].tolist() == pytest.approx([0.5, 0.0, 0.5])


def test_an_action_that_is_not_allowed_has_no_probability_at_all():
    allowed = torch.tensor([[True, False, True]])
    outputs = torch.tensor([[[0.0, 50.0, 0.0]]], dtype=torch.float64)
    assert combined("softmax", outputs, allowed)[0].tolist() == [0.5, 0.0, 0.5]
    assert combined("least loss", -outputs, allowed)[0].tolist() == [1.0, 0.0, 0.0]


def test_chances_are_averaged_as_chances_and_amounts_as_amounts():
    outputs = torch.tensor([[[-9.0, 0.0, 9.0]], [[9.0, 2.0, 9.0]]], dtype=torch.float64)
    every = torch.ones(1, 3, dtype=torch.bool)
    # chances 0, 0.5, 1 and 1, 0.88, 1: the first action averages 0.5, the second 0.69
    assert combined("least loss", outputs, every).argmax().item() == 0
    # amounts: 0, 1, 9; the first wins too, until its second network says 20
    outputs[1, 0, 0] = 20.0
    assert combined("least loss", outputs, every).argmax().item() == 0
    assert combined("least amount", outputs, every).argmax().item() == 1


@pytest.mark.parametrize("kind", ["least amount", "least loss"])
def test_a_policy_that_leans_weighs_predicted_losses_against_what_clinicians_do(kind):
    outputs = torch.tensor([[[0.2, 0.0, 0.1]]], dtype=torch.float64)
    propensities = torch.tensor([[0.7, 0.0, 0.3]], dtype=torch.float64)
    schema = CLINIC.log(1, seed=0).schema
    losses = (outputs.sigmoid() if kind == "least loss" else outputs)[0, 0]
    for lean in (0.0, 1e-4, 0.03, 1.0):
        policy = FittedPolicy(kind, schema, lean=lean)
        probabilities, abstained = policy.decide(propensities, outputs)
        cost = losses - lean * torch.log(torch.tensor([0.7, 1e-9, 0.3]))
        assert probabilities.argmax() == cost.argmin()
        assert not abstained.any()
    assert probabilities.argmax() == 0  # where it leans hard
    held = replace(policy, lean=0.0, support=0.5).decide(propensities, outputs)
    assert held[0].argmax() == 0  # support stays as it was


def test_a_policy_that_asks_nobody_answers_alike():
    data = CLINIC.log(5, seed=0)
    constant = FittedPolicy("constant", data.schema, constant=2)
    assert (constant.predict_proba(data) == [0, 0, 1]).all()
    assert (constant.predict(data) == 2).all()
    uniform = FittedPolicy("uniform", data.schema)
    assert (uniform.predict_proba(data) == 1 / 3).all()
    assert not uniform.abstains(data).any()


def test_a_constant_gives_way_where_it_has_no_support(learner):
    data = ward()
    likely = learner.policy_.propensities(data)
    floor = float(np.median(likely[:, 1]))
    policy = replace(learner.policy_, kind="constant", constant=1, networks=None, support=floor)
    answer = policy.answer(data)
    assert (answer.abstained == (likely[:, 1] < floor)).all()
    assert (answer.probabilities[answer.abstained] == likely[answer.abstained]).all()
    assert (answer.probabilities[~answer.abstained] == [0, 1, 0]).all()


def test_the_likeliest_action_is_recommended_and_the_first_of_equals_wins():
    answer = Answer(np.array([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2]]), np.zeros(2, bool))
    policy = FittedPolicy("constant", ward().schema, constant=1)
    assert policy.recommend(answer).tolist() == [1, 0]


def test_a_policy_without_preference_draws_by_its_seed():
    data = ward()
    first, same, other = (FittedPolicy("uniform", data.schema, seed=s) for s in (1, 1, 2))
    assert (first.predict(data) == same.predict(data)).all()
    assert (first.predict(data) != other.predict(data)).any()
    assert np.bincount(first.predict(data)).min() > data.n_decisions / 6


def test_imitations_and_policies_without_preference_draw_whatever_they_are_told(learner):
    assert learner.policy_.acts == "likeliest"
    assert learner.policy_.imitation().acts == "draws"
    assert FittedPolicy("uniform", ward().schema, acts="likeliest").acts == "draws"


def test_what_is_deployed_is_what_is_recommended(learner):
    data = ward()
    policy = learner.policy_
    sure = policy.deployed(data)
    assert (np.eye(3)[policy.predict(data)] == sure.probabilities).all()
    drawn = replace(policy, acts="draws", seed=4)
    assert (drawn.deployed(data).probabilities == policy.predict_proba(data)).all()
    share = np.bincount(drawn.predict(data), minlength=3) / data.n_decisions
    spread = np.sqrt(0.25 / data.n_decisions)
    assert np.abs(share - policy.predict_proba(data).mean(axis=0)).max() < 4 * spread
    assert (drawn.predict(data) == drawn.predict(data)).all()


def test_one_pass_gives_the_answer_and_what_clinicians_do_to_the_bit(learner):
    stays = ward(n_stays=20, seed=5)
    answer, clinicians = learner.policy_.consult(stays)
    expected = learner.policy_.answer(stays)
    np.testing.assert_array_equal(answer.probabilities, expected.probabilities)
    np.testing.assert_array_equal(answer.abstained, expected.abstained)
    np.testing.assert_array_equal(clinicians, learner.policy_.propensities(stays))
    blind = FittedPolicy("uniform", stays.schema)
    assert blind.consult(stays)[1] is None


def test_stays_without_a_decision_get_an_empty_answer(learner):
    data = ward()
    counts = np.bincount(data.decisions().stay, minlength=data.n_stays)
    short = data.subset(counts == 0)
    assert short.n_stays > 0
    answer = learner.policy_.answer(short)
    assert answer.probabilities.shape == (0, 3)
    assert answer.abstained.shape == (0,)


def test_questions_that_know_fewer_actions_are_answered_for_all(learner):
    asked = ward().without_log()
    fewer = replace(asked, schema=replace(asked.schema, n_actions=1))
    assert (learner.predict_proba(fewer) == learner.predict_proba(asked)).all()


def test_more_actions_than_were_learned_are_refused(learner):
    data = ward()
    more = replace(data, schema=replace(data.schema, n_actions=5))
    with pytest.raises(DataError, match=r"^data, n_actions: is more than the policy was fitted on"):
        learner.predict_proba(more)


def test_missing_values_are_filled_with_the_training_mean(learner):
    data = ward()
    gap = np.array(data.sequence)
    gap[::3, 0] = np.nan
    schema = replace(data.schema, indicators=("hr",))
    holes = replace(data, sequence=gap, schema=schema)
    mean = np.where(np.isnan(gap), learner.policy_.scaler.mean_["hr"], gap).astype(np.float32)
    found = learner.predict_proba(holes)
    filled = learner.predict_proba(replace(data, sequence=mean))
    assert found == pytest.approx(filled, abs=1e-5)


def test_an_earlier_action_is_read_and_a_later_one_is_not(reader):
    data = ward()
    place = np.arange(data.n_steps) - np.repeat(data.offsets[:-1], np.diff(data.offsets))
    step = data.decisions().step
    before = reader.predict_proba(data)
    changed = np.where(place == 2, (data.action + 1) % 3, data.action)
    after = reader.predict_proba(replace(data, action=changed))
    assert (before[step <= 2] == after[step <= 2]).all()
    assert (before[step == 3] != after[step == 3]).any()


def test_a_policy_that_reads_earlier_actions_refuses_data_without_them(reader):
    with pytest.raises(DataError, match=r"^data: must hold the actions taken so far"):
        reader.predict_proba(ward().without_log())


def test_nothing_of_a_patient_is_in_the_policy(learner):
    """P3: its arrays are the size of its networks, whatever the number of stays."""
    count = sum(
        value.numel()
        for bundle in (learner.policy_.propensity, learner.policy_.networks)
        for value in bundle.parameters.values()
    )
    bigger = DoublyRobust(**small(support=0.0)).fit(ward(n_stays=90)).policy_
    assert count == sum(
        value.numel()
        for bundle in (bigger.propensity, bigger.networks)
        for value in bundle.parameters.values()
    )


TABLE = np.array([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2], [0.1, 0.1, 0.8]])
AWAY = np.array([False, False, True])


def test_the_likeliest_action_is_sure_but_where_it_abstains():
    found = take_likeliest(TABLE, AWAY)
    assert found.probabilities.tolist() == [[0, 1, 0], [1, 0, 0], [0.1, 0.1, 0.8]]
    assert found.abstained is AWAY


def test_where_it_abstains_others_decide():
    theirs = np.full((3, 3), 1 / 3)
    found = Deployed(TABLE, AWAY).left_to(theirs)
    assert (found[:2] == TABLE[:2]).all()
    assert (found[2] == 1 / 3).all()
    assert Deployed(TABLE, AWAY).judged[1] is AWAY


def test_actions_are_drawn_as_often_as_the_probabilities_say_and_never_against_them():
    table = np.tile([0.0, 0.7, 0.0, 0.3, 0.0], (20_000, 1))
    found = draw_from(3, table)
    share = np.bincount(found, minlength=5) / len(found)
    assert set(found) == {1, 3}
    assert abs(share[1] - 0.7) < 0.015  # four standard errors
    assert (found == draw_from(3, table)).all()
    assert (found != draw_from(4, table)).any()
    assert draw_from(0, np.zeros((0, 3))).shape == (0,)
