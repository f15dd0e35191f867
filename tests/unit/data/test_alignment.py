"""Stays read like others, and joined."""

from dataclasses import replace

import numpy as np
import pytest

from etips.data.alignment import align, join
from etips.data.coded import Coded
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.errors import DataError
from etips.notes import collecting_notes
from etips.worlds.two_hospitals import FLUID, SECOND, simulate_place


@pytest.fixture(scope="module")
def first():
    return simulate_place(60, seed=1)


@pytest.fixture(scope="module")
def second():
    return simulate_place(60, seed=2, place=SECOND)


def log(names=("a", "b"), static=("age",), *, actions=(), action=(0, 1, 0, 1), **schema):
    own = Schema(sequence=tuple(names), n_actions=max(len(actions), 2), static=tuple(static),
                 lag=0, actions=tuple(actions), **schema)  # fmt: skip
    columns = np.arange(4 * len(names), dtype=np.float32).reshape(4, len(names))
    return Trajectories(
        sequence=columns,
        offsets=np.array([0, 2, 4]),
        schema=own,
        action=np.array(action),
        loss=np.zeros(4),
        static=np.arange(2 * len(static), dtype=np.float32).reshape(2, len(static)),
    )


def test_data_that_are_alike_are_left_as_they_are(first):
    assert align(first, first.schema) is first


def test_doses_fall_into_the_classes_of_the_other_hospital(first, second):
    with collecting_notes() as notes:
        moved = align(second, first.schema)
    wanted = simulate_place(60, seed=2, place=SECOND, doses=first.schema.recipe.doses)
    assert np.array_equal(moved.action, wanted.action)
    assert (moved.action != second.action).mean() > 0.1
    assert moved.schema.means_actions_of(first.schema)
    assert not second.schema.means_actions_of(first.schema)
    assert moved.truth is None  # that was about other classes
    assert moved.schema.provenance == second.schema.provenance
    (told,) = notes
    share = (moved.logged_action != second.logged_action).mean()
    assert f"{share:.0%} of the decisions" in told


def test_a_step_without_an_action_keeps_none(first, second):
    action = second.action.copy()
    action[::3] = -1
    moved = align(replace(second, action=action, truth=None), first.schema)
    assert ((moved.action == -1) == (action == -1)).all()


def test_a_dose_in_another_unit_is_refused(first, second):
    recipe = first.schema.recipe
    litres, drops = (replace(recipe.doses[0], unit=unit) for unit in ("L", "mL"))
    like = replace(first.schema, recipe=replace(recipe, doses=(litres, recipe.doses[1])))
    other = replace(
        second.schema, recipe=replace(recipe, doses=(drops, second.schema.recipe.doses[1]))
    )
    with pytest.raises(DataError, match=f"^data, dose {FLUID}: must be in the policy's unit.*to L"):
        align(replace(second, schema=other), like)


def test_features_are_found_by_name_and_others_left_out():
    here, there = log(("b", "spare", "a")), log(("a", "b"))
    with collecting_notes() as notes:
        moved = align(here, there.schema)
    assert moved.schema.sequence == ("a", "b")
    assert np.array_equal(moved.sequence, here.sequence[:, [2, 0]])
    assert notes == ["the policy does not read the feature spare: left out"]


def test_a_coded_sequence_stays_coded():
    here = log(("b", "a"))
    coded = replace(here, sequence=Coded(here.sequence[:2], np.array([0, 1, 1, 0], np.int32)))
    moved = align(coded, log(("a", "b")).schema)
    assert isinstance(moved.sequence, Coded)
    assert np.array_equal(moved.sequence[:], coded.sequence[:][:, [1, 0]])


def test_features_that_are_not_there_are_refused_by_name():
    with pytest.raises(DataError, match=r"^data: must hold the features b, c, which the policy"):
        align(log(("a",)), log(("a", "b", "c")).schema)
    with pytest.raises(DataError, match="the features b, c, d, e, f and 1 more"):
        align(log(("a",)), log(tuple("abcdefg")).schema)


def test_a_feature_that_is_static_in_one_alone_is_refused():
    with pytest.raises(DataError, match="the feature age must not be static in one"):
        align(log(("a", "b")), log(("a", "age"), ("b",)).schema)


def test_a_feature_in_another_unit_is_refused_by_both_names():
    with pytest.raises(
        DataError, match=r"^data, feature temp \(F\): must be temp \(C\): another u"
    ):
        align(log(("temp (F)",)), log(("temp (C)",)).schema)


def test_a_level_that_nobody_has_is_zero_and_one_that_is_new_is_refused():
    three = log(("x", "w=a", "w=b"), categories={"w": ("a", "b")})
    two = log(("x", "w=a"), categories={"w": ("a",)})
    moved = align(two, three.schema)
    assert np.array_equal(moved.sequence[:, 2], np.zeros(4))
    with pytest.raises(DataError, match=r"^data, category w: must have no level that the policy"):
        align(three, two.schema)
    unused = replace(three, sequence=three.sequence * np.float32([1, 1, 0]))
    assert align(unused, two.schema).schema.sequence == ("x", "w=a")


def test_actions_are_numbered_by_their_names():
    here = log(actions=("give", "wait"), action=(0, 1, -1, 1))
    moved = align(here, log(actions=("wait", "give")).schema)
    assert moved.action.tolist() == [1, 0, -1, 0]
    assert moved.schema.actions == ("wait", "give")


def test_an_action_that_the_policy_does_not_know_is_refused_if_somebody_had_it():
    like = log(actions=("wait", "give")).schema
    with pytest.raises(DataError, match=r"^data, actions: must be among those .* 1 are not"):
        align(log(actions=("wait", "operate")), like)
    only = log(actions=("wait", "operate"), action=(0, 0, 0, -1))
    assert align(only, like).action.tolist() == [0, 0, 0, -1]


def test_questions_without_a_log_take_over_the_names(first, second):
    asked = align(second.without_log(), first.schema)
    assert asked.schema.recipe == first.schema.recipe
    assert not asked.logged


@pytest.fixture(scope="module")
def parts():
    first = simulate_place(20, seed=1)
    second = align(simulate_place(30, seed=2, place=SECOND), first.schema)
    return {"a": first, "b": replace(second, group=np.arange(30)[::-1] // 2)}


def test_stays_and_patients_keep_apart_though_they_are_numbered_alike(parts):
    joined, source = join(parts)
    assert joined.n_stays == 50
    assert np.unique(joined.stay).size == 50
    assert np.unique(joined.group).size == 20 + 15
    assert source.tolist() == ["a"] * 20 + ["b"] * 30
    for name, own in parts.items():
        again = joined.subset(source == name)
        assert np.array_equal(again.sequence, own.sequence)
        assert np.array_equal(again.logged_action, own.logged_action)
        assert np.array_equal(again.logged_loss, own.logged_loss)
        assert np.array_equal(again.static, own.static)
        assert np.array_equal(again.units, own.units)  # dealt into the same folds


def test_what_must_not_become_a_decision_does_not(parts):
    eligible = np.ones(parts["b"].n_steps, bool)
    eligible[1::2] = False
    joined, source = join({**parts, "b": replace(parts["b"], eligible=eligible)})
    own = joined.subset(source == "b")
    assert np.array_equal(own.eligible, eligible)
    assert joined.subset(source == "a").n_decisions == parts["a"].n_decisions


def test_sources_that_were_not_aligned_are_refused(parts):
    other = simulate_place(30, seed=2, place=SECOND)
    with pytest.raises(DataError, match="same classes of doses"):
        join({"a": parts["a"], "b": other})
    narrow = replace(other.schema, static=("age", "sex"))
    with pytest.raises(DataError, match="same features and actions"):
        join({"a": parts["a"], "b": replace(other, schema=narrow)})
    with pytest.raises(DataError, match="logged actions"):
        join({"a": parts["a"], "b": parts["b"].without_log()})
