"""Policies of stacked models: how they answer, and what a file keeps of them."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from small_worlds import ward
from stacks import boosted, linear, networks, stacked

from etips.models.bundle import Bundle
from etips.models.row_model import rows_of
from etips.models.stack import FLOOR, Part, Stack
from etips.policies.policy_files import load_policy, save_policy

DATA = ward(60)


@pytest.fixture(scope="module")
def policy():
    return stacked(DATA).having_seen(DATA)


@pytest.fixture
def folder(policy, tmp_path):
    save_policy(policy, tmp_path / "policy")
    return tmp_path / "policy"


def softmax(table):
    power = np.exp(table - table.max(axis=-1, keepdims=True))
    return power / power.sum(axis=-1, keepdims=True)


def alone(member, policy):
    """Mean outputs of one member, asked by itself."""
    if not isinstance(member, Bundle):
        return member.outputs(rows_of(DATA, member.reads))
    asked = []
    for number in range(member.n_members):
        own = replace(policy, kind="imitation", propensity=member.select([number]), networks=None)
        asked.append(np.log(own.propensities(DATA)))
    return np.array(asked)


def test_a_stack_mixes_chances_by_weight_and_then_by_temperature(policy):
    parts = policy.propensity.members
    tables = [alone(part.member, policy) for part in parts]
    tables = [tables[0].mean(0), softmax(tables[1]).mean(0), softmax(tables[2]).mean(0)]
    mixed = sum(part.weight * table for part, table in zip(parts, tables, strict=True))
    wanted = np.maximum(mixed, FLOOR) ** (1 / 1.5)
    wanted /= wanted.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(policy.propensities(DATA), wanted, rtol=1e-5)


def test_a_stack_of_losses_is_the_weighted_sum_of_what_is_about_the_mean(policy):
    said = [torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(k)) for k in range(3)]
    total = policy.networks.mix(said)
    sure = [said[0].double(), torch.sigmoid(said[1].double()), said[2].double()]
    centred = [own.mean(0) - own.mean(0).mean(-1, keepdim=True) for own in sure]
    wanted = 0.5 * centred[0] + 0.2 * centred[1] + 0.3 * centred[2]
    torch.testing.assert_close(total, wanted[None])


def test_without_support_a_stacked_policy_never_abstains(policy):
    answer, clinicians = policy.consult(DATA)
    assert not answer.abstained.any()
    np.testing.assert_array_equal(clinicians, policy.propensities(DATA))
    assert len(np.unique(answer.probabilities.argmax(axis=1))) > 1
    hard = replace(policy, lean=1e6).predict(DATA)
    np.testing.assert_array_equal(hard, clinicians.argmax(axis=1))


def test_a_stack_of_one_answers_as_its_one_member():
    for member, kind in ((boosted(DATA), "least amount"), (networks(DATA), "least amount")):
        own = stacked(DATA, networks=member, kind=kind, lean=0.0)
        one = stacked(DATA, networks=Stack((Part(member, 1.0, "amount"),), "losses"), lean=0.0)
        np.testing.assert_array_equal(own.predict_proba(DATA), one.predict_proba(DATA))


def test_a_stacked_policy_is_read_back_as_it_was_written(policy, folder):
    back = load_policy(folder)
    np.testing.assert_array_equal(back.predict_proba(DATA), policy.predict_proba(DATA))
    np.testing.assert_array_equal(back.propensities(DATA), policy.propensities(DATA))
    assert (back.lean, back.propensity.temperature) == (0.05, 1.5)
    assert back.seen is not None


def test_the_clinicians_of_a_policy_that_leans_can_be_kept_by_themselves(policy, tmp_path):
    save_policy(policy.imitation(), tmp_path / "clinicians")
    kept = load_policy(tmp_path / "clinicians").predict_proba(DATA)
    np.testing.assert_array_equal(kept, policy.propensities(DATA))


def test_hashes_of_whom_it_saw_are_salted_by_its_weights(policy):
    first, *others = policy.networks.members
    other = replace(policy.networks, members=(replace(first, weight=0.5 + 1e-9), *others))
    assert policy.having_seen(DATA).seen.salt == policy.seen.salt
    assert replace(policy, networks=other).having_seen(DATA).seen.salt != policy.seen.salt


@pytest.mark.parametrize(
    ("parts", "mixes"),
    [
        ([(0.5, "amount"), (0.4, "amount")], "losses"),
        ([(1.5, "amount"), (-0.5, "amount")], "losses"),
        ([(np.nan, "amount")], "losses"),
        ([(1.0, "softmax")], "losses"),
        ([(1.0, "logit")], "propensities"),
        ([(1.0, "amount")], "potions"),
        ([], "losses"),
    ],
)
def test_a_stack_that_cannot_be_is_refused(parts, mixes):
    with pytest.raises(ValueError, match="stack"):
        Stack(tuple(Part(linear(DATA), *own) for own in parts), mixes)
