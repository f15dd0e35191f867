"""What speaks for an action: complete, between two actions, by feature and step; on the whole."""

import sys
from dataclasses import replace

import numpy as np
import pytest
import served_runs
import torch
from stacks import boosted, forest, linear, networks, stacked

from etips.cohorts.sepsis3.variables import SEQUENTIAL_FEATURES, STATIC_FEATURES
from etips.data.schema import Schema
from etips.errors import DataError, SettingError
from etips.explanation.attribution import (
    agree,
    attribute,
    attribute_inputs,
    attribute_overall,
    rank_correlation,
    shapley_values,
)
from etips.explanation.feature_names import organ_systems, source_of
from etips.explanation.preference import Preference
from etips.learn.learners.lasso import QLearning
from etips.models.bundle import Bundle
from etips.models.encoders.gru import GRU
from etips.models.encoders.registry import ENCODERS
from etips.models.network import Network
from etips.models.stack import Part, Stack
from etips.policies.policy import FittedPolicy


def last(stay):
    return int(stay.decisions().step[-1])


def longest_of(log):
    return log.subset([int(np.argmax(np.diff(log.offsets)))])


def both_actions(n):
    return np.zeros(n, np.int64), np.ones(n, np.int64)


# Networks


def test_attributions_add_up_to_the_difference_from_the_average_patient(policy, longest):
    own = attribute(policy, longest, last(longest), 0, 1)
    assert abs(own.total) > 1e-3
    assert own.values.sum() + own.static_values.sum() == pytest.approx(own.total, rel=0.01)
    assert own.completeness_error <= 0.01
    assert own.complete
    assert own.by == "integrated gradients of the mean of 2 networks"
    turned = attribute(policy, longest, last(longest), 1, 0)
    np.testing.assert_allclose(own.values, -turned.values, atol=1e-9)
    np.testing.assert_allclose(own.static_values, -turned.static_values, atol=1e-9)
    likeliest = 1 + policy.predict_proba(longest)[-1][1:].argmax()
    assert attribute(policy, longest, last(longest), 0).against == likeliest


@pytest.mark.parametrize(
    ("kind", "member", "unit"),
    [("least loss", "networks", "predicted loss"), ("imitation", "propensity", "log-odds")],
)
def test_a_policy_that_predicts_losses_and_one_that_imitates_are_explained_too(
    other_policies, longest, kind, member, unit
):
    policy = other_policies[kind]
    weights = {
        name: torch.randn(value.shape, generator=torch.Generator().manual_seed(0))
        for name, value in policy.propensity.parameters.items()
    }
    drawn = Bundle(policy.propensity.network, weights)
    own = attribute(replace(policy, **{member: drawn}), longest, last(longest), 2, 0)
    assert abs(own.total) > 1e-4
    assert own.complete
    assert own.unit == unit


def test_it_sees_the_steps_that_the_decision_saw_and_no_more(policy, longest):
    step = int(longest.decisions().step[1])
    own = attribute(policy, longest, step, 0, 1)
    assert own.values.shape == (step, 4)  # lag 1
    assert list(own.steps) == list(range(step))


def test_many_decisions_get_what_each_gets_alone(policy, log):
    preference, some = Preference(policy), log.subset(slice(0, 12))
    n = some.n_decisions
    values = attribute_inputs(preference, preference.read(some), *both_actions(n))
    stay, step = (int(part[n - 1]) for part in some.decisions())
    alone = attribute(policy, some.subset([stay]), step, 0, 1)
    width = len(alone.values)
    np.testing.assert_allclose(values.steps[n - 1, :width], alone.values, atol=1e-6)
    assert not values.steps[n - 1, width:].any()


def test_what_cannot_be_explained_is_refused(policy, longest, monkeypatch):
    constant = FittedPolicy("constant", policy.schema, constant=1)
    with pytest.raises(SettingError, match="reads no feature"):
        attribute(constant, longest, last(longest), 0, 1)
    with pytest.raises(DataError, match="step"):
        attribute(policy, longest, 99, 0, 1)
    with pytest.raises(SettingError, match="action"):
        attribute(policy, longest, last(longest), 0, 7)
    monkeypatch.setitem(sys.modules, "captum.attr", None)
    with pytest.raises(SettingError, match=r"captum.*etips\[explain\]"):
        attribute(policy, longest, last(longest), 0, 1)


def test_taking_away_what_speaks_loudest_changes_most(policy, log):
    """Deletion: a third of the inputs by attribution undo more than a third by chance."""
    preference = Preference(policy)
    histories = preference.read(log.subset(slice(0, 60)))
    n = len(histories.last)
    pair = both_actions(n)
    values = attribute_inputs(preference, histories, *pair)
    whole = values.preference - values.reference
    step, _ = preference.reference()
    inside = np.arange(histories.steps.shape[1]) <= histories.last.numpy()[:, None]
    left = []
    by_chance = np.random.default_rng(0).random(values.steps.shape)
    for scores in (values.steps * np.sign(whole)[:, None, None], by_chance):
        scores = np.where(inside[:, :, None], scores, -np.inf).reshape(n, -1)
        ranks = np.argsort(np.argsort(-scores, axis=1), axis=1)
        gone = ranks < (inside.sum(axis=1) * values.steps.shape[2] / 3)[:, None]
        mask = torch.from_numpy(gone.reshape(values.steps.shape))
        changed = replace(histories, steps=torch.where(mask, step, histories.steps))
        with torch.no_grad():
            rest = preference.between(changed, *map(torch.from_numpy, pair)).numpy()
        left.append(np.mean((rest - values.reference) * np.sign(whole)))
    assert left[0] < left[1]


def test_networks_with_other_weights_have_another_explanation(policy, log):
    drawn = Bundle.start(policy.networks.network, [900, 901])
    histories = Preference(policy).read(log)
    one, two = (
        attribute_inputs(Preference(own), histories, *both_actions(log.n_decisions))
        for own in (policy, replace(policy, networks=drawn))
    )
    pairs = zip(one.steps.sum(axis=1), two.steps.sum(axis=1), strict=True)
    ranks = [rank_correlation(*pair) for pair in pairs]
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
    pair = map(torch.from_numpy, both_actions(longest.n_decisions))
    here = preference.between(preference.read(longest), *pair).detach()
    each = []
    for member in range(policy.networks.n_members):
        single = replace(policy, networks=policy.networks.select([member]), support=0.0)
        p = single.predict_proba(longest)
        each.append(np.log(p[:, 0] / p[:, 1]))
    np.testing.assert_allclose(here, np.mean(each, axis=0), atol=1e-4)


def test_it_answers_as_the_policy_does(policy, other_policies, log):
    for own in (policy, *other_policies.values(), QLearning().fit(log).policy_):
        preference = Preference(own)
        answer, wanted = preference.answer(preference.read(log)), own.answer(log)
        np.testing.assert_allclose(answer.probabilities, wanted.probabilities, atol=1e-5)
        assert (answer.abstained == wanted.abstained).all()


def test_the_average_patient_is_the_training_mean(policy, log):
    step, static = Preference(policy).reference()
    assert step.tolist() == [0, 0, 0, 0]  # all of them standardised
    row = Preference(policy).reference_row()
    np.testing.assert_allclose(row[:4], log.sequence.mean(axis=0), atol=1e-4)
    assert len(static) == 2


# Trees and stacks: Shapley values


def test_shares_of_a_sum_are_its_terms_and_those_of_anything_add_up():
    weight = np.array([1.0, -2.0, 0.5, 3.0])
    np.testing.assert_allclose(shapley_values(lambda taken: taken @ weight, 4), weight)
    row, reference = np.random.default_rng(0).normal(size=(2, 6))

    def ask(taken):
        rows = np.where(taken, row, reference)
        return np.sin(rows).prod(axis=1) + rows[:, 0] * rows[:, 1]

    whole = ask(np.ones((1, 6), bool)) - ask(np.zeros((1, 6), bool))
    assert shapley_values(ask, 6).sum() == pytest.approx(whole[0])


@pytest.mark.parametrize("lean", [0.0, 0.05])
def test_attributions_of_a_stack_add_up(gappy, lean):
    policy, stay = stacked(gappy, lean=lean), longest_of(gappy)
    own = attribute(policy, stay, last(stay), 0, 1)
    assert abs(own.total) > 1e-4
    assert own.completeness_error < 1e-4
    assert own.unit == "predicted loss"
    turned = attribute(policy, stay, last(stay), 1, 0)
    np.testing.assert_allclose(own.values, -turned.values, atol=1e-9)


def test_the_preference_is_what_the_policy_goes_by(gappy):
    """The stacked loss and the lean, asked by way of the policy's own parts."""
    policy = stacked(gappy)
    preference = Preference(policy)
    scores = preference.scores(preference.read(gappy)).detach().numpy()
    assert (scores.argmax(axis=1) == policy.predict(gappy)).all()
    answer, wanted = preference.answer(preference.read(gappy)), policy.answer(gappy)
    np.testing.assert_allclose(answer.probabilities, wanted.probabilities, atol=1e-5)
    plain = Preference(replace(policy, lean=0.0))
    leaned = scores - plain.scores(plain.read(gappy)).detach().numpy()
    np.testing.assert_allclose(leaned, 0.05 * np.log(policy.propensities(gappy)), atol=1e-6)


def test_shares_of_a_sum_of_columns_are_those_of_each_column(gappy):
    """A linear stack of the last step has one right answer: weight times distance."""
    members = (
        Part(linear(gappy, "last", 1), 0.25, "amount"),
        Part(linear(gappy, "last", 2), 0.75, "amount"),
    )
    policy = stacked(gappy, lean=0.0, networks=Stack(members, "losses"))
    stay = longest_of(gappy)
    own = attribute(policy, stay, last(stay), 0, 2)
    weight = sum(part.weight * part.member.weight[0] for part in members)
    preference = Preference(policy)
    row = np.nan_to_num(preference.read(stay).rows[-1])  # what the model takes missing values for
    wanted = (row - preference.reference_row()) * -(weight[:, 0] - weight[:, 2])
    d = len(gappy.schema.sequence)
    np.testing.assert_allclose(own.values[-1], wanted[:d], atol=1e-6)
    np.testing.assert_allclose(own.static_values, wanted[d:], atol=1e-6)
    assert not own.values[:-1].any()


def test_levels_and_marks_move_with_their_column():
    log = served_runs.ward(120)
    model = linear(log, "last", 1)
    model = replace(model, scale=100 * model.scale)  # far from where values are held
    policy = stacked(log, lean=0.0, networks=Stack((Part(model, 1.0, "amount"),), "losses"))
    stay = longest_of(log)
    own = attribute(policy, stay, last(stay), 0, 2)
    preference = Preference(policy)
    row = np.nan_to_num(preference.read(stay).rows[-1])
    weight = (model.weight[0, :, 2] - model.weight[0, :, 0]) / 100
    pressure, lactate, night, day, gone, age = (row - preference.reference_row()) * weight
    wanted = {"MeanBP": pressure, "Lactate": lactate + gone, "shift": night + day, "age": age}
    assert own.by_column() == pytest.approx(wanted, abs=1e-6)


def test_shares_of_a_linear_summary_gather_all_that_tells_of_a_column(gappy):
    """The reference is the average patient over as many steps: no change, one value throughout."""
    model = linear(gappy, "history", 1)
    policy = stacked(gappy, lean=0.0, networks=Stack((Part(model, 1.0, "amount"),), "losses"))
    stay = longest_of(gappy)
    own = attribute(policy, stay, last(stay), 0, 1)
    histories = Preference(policy).read(stay)
    row, average = histories.summaries["history"][-1], histories.average["history"][-1]
    d, lactate = len(gappy.schema.sequence), gappy.schema.sequence.index("lactate")
    assert average[2 * d : 3 * d].tolist() == [0] * d  # changes
    assert average[-3 * d :].tolist() == [*average[:d]] * 3
    assert average[lactate] == pytest.approx(policy.scaler.mean_["lactate"], abs=1e-5)
    filled, other = np.nan_to_num(row), np.nan_to_num(average)
    by_column = (filled - other) * -(model.weight[0, :, 0] - model.weight[0, :, 1])
    places = [k * d + lactate for k in range(4)] + [len(row) - k * d + lactate for k in (1, 2, 3)]
    assert own.values[-1, lactate] == pytest.approx(by_column[places].sum(), abs=1e-6)


@pytest.mark.parametrize("kind", ["imitation", "least loss", "softmax", "least amount"])
def test_deep_trees_and_a_lean_are_explained_in_any_kind(gappy, kind):
    member = {"imitation": None, "least amount": networks(gappy)}.get(kind, boosted(gappy))
    lean = 0.1 if kind.startswith("least") else 0.0
    policy = stacked(gappy, kind=kind, networks=member, propensity=forest(gappy), lean=lean)
    stay = longest_of(gappy)
    own = attribute(policy, stay, last(stay), 0, 1)
    assert own.completeness_error < 1e-4
    probabilities = policy.answer(stay).probabilities[-1]
    if kind == "imitation":
        wanted = np.log(probabilities[0] / probabilities[1])
        assert own.preference == pytest.approx(wanted, abs=1e-6)
    elif lean:
        clinicians = policy.propensities(stay)[-1]
        plain = attribute(replace(policy, lean=0.0), stay, last(stay), 0, 1).preference
        leans = lean * np.log(clinicians[0] / clinicians[1])
        assert own.preference - plain == pytest.approx(leans, abs=1e-5)


def test_earlier_actions_are_one_column(gappy):
    wide = Bundle.start(Network(GRU(4), 4 + 3, 2, 3), [0])
    stack = Stack((Part(wide, 0.5, "amount"), Part(boosted(gappy), 0.5, "amount")), "losses")
    policy = stacked(gappy, networks=stack, propensity=forest(gappy), earlier_actions=True)
    stay = longest_of(gappy)
    own = attribute(policy, stay, last(stay), 0, 1)
    assert own.columns[-1] == "the action before"
    assert own.completeness_error < 1e-4


def test_it_says_what_was_attributed(gappy):
    policy = stacked(gappy)
    whole = "Shapley values, by sampled orders, of 6 models as one"
    assert Preference(policy).described() == whole
    assert "of 3 models as one" in Preference(replace(policy, lean=0.0)).described()
    assert "of 3 models as one" in Preference(policy.imitation()).described()


# On the whole


def test_columns_come_with_limits_and_shares_that_add_up(policy, log, gappy):
    own = attribute_overall(policy, log, most=60)
    assert {column.name for column in own.columns} == {*log.schema.sequence, *log.schema.static}
    assert sum(column.share for column in own.columns) == pytest.approx(1)
    means = [column.mean for column in own.columns]
    assert means == sorted(means, reverse=True)
    assert all(column.low <= column.mean <= column.high for column in own.columns)
    assert own.completeness_error <= 0.01
    assert 0 <= own.networks_agree <= 1
    stack = attribute_overall(stacked(gappy), gappy, most=12)
    assert {column.name for column in stack.columns} == {column.name for column in own.columns}
    assert stack.completeness_error < 1e-4
    assert stack.networks_agree is None


def test_limits_are_as_wide_as_another_draw_differs(policy, log):
    """Twice as far apart as their limits, means of two halves would be a wrong formula."""
    halves = [log.subset(np.arange(start, log.n_stays, 2)) for start in (0, 1)]
    one, other = (
        {own.name: own for own in attribute_overall(policy, half).columns} for half in halves
    )
    z = [
        (one[name].mean - other[name].mean)
        / np.hypot(one[name].high - one[name].mean, other[name].high - other[name].mean)
        * 1.96
        for name in one
    ]
    assert np.abs(z).max() < 4


def test_agreement_is_by_the_first_columns_and_by_ranks():
    one = {f"x{k}": 20.0 - k for k in range(20)}
    found = agree([one, {name: -value for name, value in one.items()}])
    assert (found.n_policies, found.first_in_common) == (2, 0)
    assert found.rank_correlation == pytest.approx(-1)
    assert agree([one, one]).first_in_common == 1
    assert rank_correlation(np.array([1.0, 1, 2]), np.array([5.0, 5, 9])) == pytest.approx(1)
    assert rank_correlation(np.zeros(3), np.arange(3.0)) == 0


def test_ten_people_are_too_few(policy, log):
    with pytest.raises(DataError, match="11 people"):
        attribute_overall(policy, log.subset(slice(0, 10)))


# Names


def test_levels_and_marks_belong_to_their_column():
    schema = Schema(
        sequence=("map", "map_missing", "ward=icu", "ward=bed"),
        n_actions=2,
        categories={"ward": ("icu", "bed")},
        indicators=("map",),
    )
    assert [source_of(schema, name) for name in schema.sequence] == ["map", "map", "ward", "ward"]
    assert source_of(schema, "odd_missing") == "odd_missing"


def test_the_cohort_knows_the_organ_system_of_every_feature_it_has():
    systems = organ_systems((*SEQUENTIAL_FEATURES, *STATIC_FEATURES))
    assert "other" not in systems
    assert "MeanBP" in systems["circulation"]
    assert sum(map(len, systems.values())) == len(SEQUENTIAL_FEATURES) + len(STATIC_FEATURES)
    shorter = tuple(name.replace("_4hourly", "_2hourly") for name in SEQUENTIAL_FEATURES)
    assert "input_2hourly" in organ_systems(shorter)["fluids"]
    assert organ_systems(("a", "b", "HR")) == {}
    assert organ_systems(()) == {}
