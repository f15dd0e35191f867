"""Why a policy of stacked models prefers an action: complete, and right where it can be known."""

from dataclasses import replace

import numpy as np
import pytest
import served_runs
from stacks import boosted, forest, linear, networks, stacked

from etips.data.history_rows import summary_columns
from etips.explanation.attribution import attribute, described
from etips.explanation.global_attribution import attribute_overall
from etips.explanation.measure_next import what_to_measure
from etips.explanation.policy_tree import PolicyTree
from etips.explanation.preference import Preference
from etips.explanation.similar import Neighbourhood
from etips.explanation.stay_explanation import explain_stay
from etips.models.bundle import Bundle
from etips.models.encoders.gru import GRU
from etips.models.network import Network
from etips.models.stack import Part, Stack


@pytest.fixture(scope="module")
def gappy(log):
    """A log with missing values, a logarithm and a category."""
    rng = np.random.default_rng(0)
    sequence = np.abs(np.array(log.sequence))
    sequence[rng.random(sequence.shape) < 0.2] = np.nan
    schema = replace(log.schema, indicators=log.schema.sequence, logarithms=("lactate",))
    return replace(log, sequence=sequence, schema=schema)


def longest_of(log):
    return log.subset([int(np.argmax(np.diff(log.offsets)))])


def last(stay):
    return int(stay.decisions().step[-1])


@pytest.mark.parametrize("lean", [0.0, 0.05])
def test_attributions_of_a_stack_add_up(gappy, lean):
    policy = stacked(gappy, lean=lean)
    stay = longest_of(gappy)
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
    scores = preference.scores(preference.read(gappy))
    assert (scores.argmax(axis=1) == policy.predict(gappy)).all()
    said, wanted = preference.answer(preference.read(gappy)), policy.answer(gappy)
    np.testing.assert_allclose(said.probabilities, wanted.probabilities, atol=1e-5)
    plain = Preference(replace(policy, lean=0.0))
    leaned = scores - plain.scores(plain.read(gappy))
    wanted = 0.05 * np.log(policy.propensities(gappy))
    np.testing.assert_allclose(leaned, wanted, atol=1e-6)


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
    row = preference.read(stay).rows[-1]
    filled = np.where(np.isnan(row), 0.0, row)  # what the model takes missing values for
    wanted = (filled - preference.reference_row()) * -(weight[:, 0] - weight[:, 2])
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


def test_what_was_highest_so_far_is_told_of_a_likely_value(gappy):
    """Lactate is measured next where the highest so far alone decides."""
    model = linear(gappy, "history")
    names = summary_columns(gappy.schema, extremes=True)
    weight = np.zeros_like(model.weight)
    weight[0, names.index("highest lactate")] = [50, -50, 0]
    decided = replace(model, weight=weight, base=np.array([[0.0, 5.0, 5.0]]))
    policy = stacked(gappy, lean=0.0, networks=Stack((Part(decided, 1.0, "amount"),), "losses"))
    stay = longest_of(gappy)
    sequence = np.array(stay.sequence)
    sequence[:, gappy.schema.sequence.index("lactate")] = np.nan
    sequence[:, 0] = np.nan
    unknown = replace(stay, sequence=sequence)
    found = what_to_measure(Neighbourhood.of(policy, gappy), unknown, last(unknown))
    shift = {one.column: one.shift for one in found}
    assert shift["lactate"] > 0
    assert shift["hr"] == 0


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
    assert described(Preference(policy)) == (
        "Shapley values, by sampled orders, of 6 models as one"
    )
    assert "of 3 models as one" in described(Preference(replace(policy, lean=0.0)))
    assert "of 3 models as one" in described(Preference(policy.imitation()))


def test_everything_that_explains_a_policy_takes_a_stack(gappy):
    policy = stacked(gappy)
    overall = attribute_overall(policy, gappy, most=12)
    assert {own.name for own in overall.columns} == {*gappy.schema.sequence, *gappy.schema.static}
    assert overall.completeness_error < 1e-4
    assert overall.networks_agree is None
    stay = longest_of(gappy)
    neighbours = Neighbourhood.of(policy, gappy)
    assert explain_stay(policy, stay, neighbours=neighbours).decisions[-1].attribution.complete
    rules = PolicyTree(depth=1).fit(policy, gappy).fitted_policy()
    assert rules.kind == "tree"
    assert rules.lean == 0.0
