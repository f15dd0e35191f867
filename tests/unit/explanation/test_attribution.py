"""What speaks for an action: complete, between two actions, by feature and step."""

import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_worlds import ward

from etips.errors import DataError, SettingError
from etips.explanation.attribution import (
    attribute,
    attribute_inputs,
    described,
    row_shares,
)
from etips.explanation.global_attribution import rank_correlation
from etips.explanation.measure_next import what_to_measure
from etips.explanation.preference import Preference
from etips.explanation.similar import Neighbourhood
from etips.learn.learners.qlearning import QLearning
from etips.models.bundle import Bundle
from etips.models.encoders.registry import ENCODERS
from etips.models.network import Network
from etips.policies.policy import FittedPolicy


def last(stay):
    return int(stay.decisions().step[-1])


def test_attributions_add_up_to_the_difference_from_the_average_patient(policy, longest):
    own = attribute(policy, longest, last(longest), 0, 1)
    assert abs(own.total) > 1e-3
    assert own.values.sum() + own.static_values.sum() == pytest.approx(own.total, rel=0.01)
    assert own.completeness_error <= 0.01
    assert own.complete


def test_a_policy_that_predicts_losses_and_one_that_imitates_are_explained_too(
    other_policies, longest
):
    for name, policy in other_policies.items():
        weights = {
            name: torch.randn(value.shape, generator=torch.Generator().manual_seed(0))
            for name, value in policy.propensity.parameters.items()
        }
        drawn = Bundle(policy.propensity.network, weights)
        member = {"least loss": "networks", "imitation": "propensity"}[name]
        own = attribute(replace(policy, **{member: drawn}), longest, last(longest), 2, 0)
        assert abs(own.total) > 1e-4
        assert own.complete
        assert own.unit == {"least loss": "predicted loss", "imitation": "log-odds"}[name]


def test_turning_the_actions_round_turns_the_signs(policy, longest):
    one, other = (attribute(policy, longest, last(longest), *pair) for pair in ((0, 1), (1, 0)))
    np.testing.assert_allclose(one.values, -other.values, atol=1e-9)
    np.testing.assert_allclose(one.static_values, -other.static_values, atol=1e-9)


def test_it_sees_the_steps_that_the_decision_saw_and_no_more(policy, longest):
    step = int(longest.decisions().step[1])
    own = attribute(policy, longest, step, 0, 1)
    assert own.values.shape == (step, 4)  # lag 1
    assert list(own.steps) == list(range(step))


def test_left_out_the_other_action_is_the_likeliest_of_the_rest(policy, longest):
    own = attribute(policy, longest, last(longest), 0)
    chances = policy.predict_proba(longest)[-1]
    assert own.against == 1 + chances[1:].argmax()


def test_many_decisions_get_what_each_gets_alone(policy, log, longest):
    preference = Preference(policy)
    some = log.subset(slice(0, 12))
    n = some.n_decisions
    values = attribute_inputs(
        preference, preference.read(some), np.zeros(n, np.int64), np.ones(n, np.int64)
    )
    number = some.n_decisions - 1
    stay, step = (int(part[number]) for part in some.decisions())
    alone = attribute(policy, some.subset([stay]), step, 0, 1)
    width = len(alone.values)
    np.testing.assert_allclose(values.steps[number, :width], alone.values, atol=1e-6)
    assert not values.steps[number, width:].any()


def test_a_policy_that_reads_nothing_is_refused(policy, longest):
    constant = FittedPolicy("constant", policy.schema, constant=1)
    with pytest.raises(SettingError, match="reads no feature"):
        attribute(constant, longest, last(longest), 0, 1)


def test_a_step_without_a_decision_and_an_action_that_is_not_there_are_refused(policy, longest):
    with pytest.raises(DataError, match="step"):
        attribute(policy, longest, 99, 0, 1)
    with pytest.raises(SettingError, match="action"):
        attribute(policy, longest, last(longest), 0, 7)


def test_without_captum_one_line_says_what_to_install(policy, longest, monkeypatch):
    monkeypatch.setitem(sys.modules, "captum.attr", None)
    with pytest.raises(SettingError, match=r"captum.*etips\[explain\]"):
        attribute(policy, longest, last(longest), 0, 1)


def test_it_says_what_was_attributed(policy):
    assert described(Preference(policy)) == "integrated gradients of the mean of 2 networks"


def test_taking_away_what_speaks_loudest_changes_most(policy, log):
    """Deletion: a third of the inputs by attribution undo more than a third by chance."""
    preference = Preference(policy)
    histories = preference.read(log.subset(slice(0, 60)))
    n = len(histories.last)
    pair = np.zeros(n, np.int64), np.ones(n, np.int64)
    values = attribute_inputs(preference, histories, *pair)
    whole = values.preference - values.reference
    step, _ = preference.reference()
    rng = np.random.default_rng(0)
    inside = np.arange(histories.steps.shape[1]) <= histories.last.numpy()[:, None]
    left = {}
    for name, scores in (
        ("by attribution", values.steps * np.sign(whole)[:, None, None]),
        ("by chance", rng.random(values.steps.shape)),
    ):
        scores = np.where(inside[:, :, None], scores, -np.inf).reshape(n, -1)
        ranks = np.argsort(np.argsort(-scores, axis=1), axis=1)
        gone = ranks < (inside.sum(axis=1) * values.steps.shape[2] / 3)[:, None]
        mask = torch.from_numpy(gone.reshape(values.steps.shape))
        steps = torch.where(mask, step, histories.steps)
        asked = (histories.last, *map(torch.from_numpy, pair))
        with torch.no_grad():
            said = preference.by_networks(steps, histories.static, *asked).numpy()
        left[name] = np.mean((said - values.reference) * np.sign(whole))
    assert left["by attribution"] < left["by chance"]


def test_networks_with_other_weights_have_another_explanation(policy, log):
    preference = Preference(policy)
    drawn = Bundle.start(policy.networks.network, [900, 901])
    other = Preference(replace(policy, networks=drawn))
    histories = preference.read(log)
    n = len(histories.last)
    pair = np.zeros(n, np.int64), np.ones(n, np.int64)
    one, two = (
        attribute_inputs(own, histories, *pair).steps.sum(axis=1) for own in (preference, other)
    )
    ranks = [rank_correlation(a, b) for a, b in zip(one, two, strict=True)]
    assert abs(np.mean(ranks)) < 0.5  # of four columns; the benchmark has forty-seven


@pytest.mark.parametrize("name", ENCODERS)
def test_any_encoder_is_attributed_completely(policy, longest, name):
    network = Network(ENCODERS[name](), 4, 2, 3)
    drawn = replace(policy, kind="softmax", networks=Bundle.start(network, [3]))
    own = attribute(drawn, longest, last(longest), 0, 1)
    assert abs(own.total) > 1e-4
    assert own.complete
    assert np.abs(own.values).sum() > 0


def test_the_preference_of_a_softmax_is_the_mean_log_odds_of_its_networks(policy, longest):
    preference = Preference(policy)
    own = preference.read(longest)
    n = len(own.last)
    pair = torch.zeros(n, dtype=torch.long), torch.ones(n, dtype=torch.long)
    here = preference.by_networks(own.steps, own.static, own.last, *pair)
    each = []
    for member in range(policy.networks.n_members):
        single = replace(policy, networks=policy.networks.select([member]), support=0.0)
        p = single.predict_proba(longest)
        each.append(np.log(p[:, 0] / p[:, 1]))
    np.testing.assert_allclose(here, np.mean(each, axis=0), atol=1e-4)


def test_it_answers_as_the_policy_does(policy, other_policies, log):
    for own in (policy, *other_policies.values()):
        preference = Preference(own)
        said, wanted = preference.answer(preference.read(log)), own.answer(log)
        np.testing.assert_allclose(said.probabilities, wanted.probabilities, atol=1e-5)
        assert (said.abstained == wanted.abstained).all()


def test_the_average_patient_is_the_training_mean(policy, log):
    preference = Preference(policy)
    step, static = preference.reference()
    assert step.tolist() == [0, 0, 0, 0]  # all of them standardised
    row = preference.reference_row()
    np.testing.assert_allclose(row[:4], log.sequence.mean(axis=0), atol=1e-4)
    assert len(static) == 2


def test_shares_of_a_sum_are_its_terms():
    weight = np.array([1.0, -2.0, 0.5, 3.0])
    row, reference = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 2.0, 1.0, 5.0])
    shares = row_shares(lambda rows: rows @ weight, row, reference)
    np.testing.assert_allclose(shares, weight * (row - reference))


def test_shares_of_anything_add_up():
    rng = np.random.default_rng(0)
    row, reference = rng.normal(size=(2, 6))

    def say(rows):
        return np.sin(rows).prod(axis=1) + rows[:, 0] * rows[:, 1]

    shares = row_shares(say, row, reference)
    whole = say(row[None]) - say(reference[None])
    assert shares.sum() == pytest.approx(whole[0])
    assert row_shares(say, row, row).tolist() == [0] * 6


def test_a_model_of_summaries_is_explained_and_asked_alike():
    log = ward(200)
    policy = QLearning().fit(log).policy_
    preference = Preference(policy)
    said, wanted = preference.answer(preference.read(log)), policy.answer(log)
    np.testing.assert_allclose(said.probabilities, wanted.probabilities, atol=1e-9)
    number = int(np.flatnonzero(np.diff(log.offsets) == 6)[0])
    stay = log.subset([number])
    own = attribute(policy, stay, int(stay.decisions().step[-1]), 0, 1)
    assert own.complete
    assert own.by.startswith("Shapley values, by sampled orders")
    held = replace(stay, sequence=np.repeat(stay.sequence[:1], stay.n_steps, axis=0))
    found = what_to_measure(Neighbourhood.of(policy, log), held, int(held.decisions().step[-1]))
    assert {one.column for one in found} == {"hr", "map", "lactate", "flat"}
