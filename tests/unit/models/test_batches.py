"""Batches of stays: everybody once, nobody's padding, nobody's future."""

from dataclasses import replace

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from random_cohorts import Cohort, cohorts

from etips.data import Coded
from etips.models.batches import step_tensors
from etips.models.encoders.gru import GRU
from etips.models.network import Network

BIG = Cohort(seed=1, n_stays=150, longest=9, gaps=0.4)


def tensors(data, earlier_actions=False):
    return step_tensors(data, earlier_actions=earlier_actions)


def stays_with_a_decision(data):
    return np.unique(data.decisions().stay)


@given(cohorts, st.integers(1, 5), st.integers(0, 99))
def test_every_stay_that_holds_a_decision_comes_once_an_epoch(cohort, size, seed):
    data = cohort.make()
    steps = tensors(data)
    parts = steps.parts(np.arange(data.n_stays), size, np.random.default_rng(seed))
    assert sorted(np.concatenate(parts)) == stays_with_a_decision(data).tolist()
    assert all(1 <= len(part) <= size for part in parts)


@given(cohorts, st.integers(1, 5))
def test_every_decision_is_answered_once_from_the_last_row_it_may_see(cohort, size):
    data = cohort.make()
    batches = list(tensors(data).batches(np.arange(data.n_stays), size))
    seen = torch.cat([batch.seen for batch in batches]).numpy()
    assert sorted(seen) == data.seen_rows.tolist()
    for batch in batches:
        assert torch.equal(batch.rows.flatten()[batch.slots], batch.seen)
        assert torch.equal(batch.stay[batch.slots % len(batch.stay)], batch.owner)
        owner = np.searchsorted(data.offsets, batch.seen.numpy(), side="right") - 1
        assert batch.owner.tolist() == owner.tolist()


def test_the_order_depends_on_seed_and_epoch_and_on_nothing_else():
    steps, stays = tensors(BIG.make()), np.arange(150)

    def order(seed, epoch):
        parts = steps.parts(stays, 8, np.random.default_rng([seed, epoch]))
        return np.concatenate(parts).tolist()

    assert order(1, 2) == order(1, 2)
    assert order(1, 2) != order(1, 3)
    assert order(1, 2) != order(2, 2)


def test_a_batch_holds_stays_of_like_length_but_not_the_same_ones_every_epoch():
    steps, stays = tensors(Cohort(seed=1, n_stays=600, longest=9, gaps=0.0).make()), np.arange(600)
    parts = [steps.parts(stays, 40, np.random.default_rng([0, e])) for e in (0, 1)]
    spread = [np.ptp(steps.reach[part]) for part in parts[0]]
    assert np.mean(spread) <= 1
    company = [{frozenset(part.tolist()) for part in epoch} for epoch in parts]
    assert not company[0] & company[1]


def test_what_comes_after_a_stays_last_decision_is_not_read():
    data = BIG.make()
    stay, seen = data.decisions().stay, data.seen_rows
    last = np.zeros(data.n_stays, np.int64)
    np.maximum.at(last, stay, seen - data.offsets[stay] + 1)
    steps = tensors(data)
    assert steps.reach.tolist() == last.tolist()
    for batch in steps.batches(np.arange(data.n_stays), 16):
        assert len(batch.rows) == last[batch.stay.numpy()].max()


def outputs(steps, stays, network, parameters):
    batch = steps.batch(np.array(stays))
    found = network.outputs(
        parameters, steps.inputs(batch.rows), steps.static[batch.stay], slots=batch.slots
    )
    return dict(zip(batch.seen.tolist(), found[0], strict=True))


def test_padding_never_leaks():
    data = BIG.make()
    steps = tensors(data)
    network = Network(GRU(5), 2, 1, 3)
    parameters = network.start([0])
    known = stays_with_a_decision(data)
    short, long = known[steps.reach[known].argmin()], known[steps.reach[known].argmax()]
    alone = outputs(steps, [short], network, parameters)
    beside = outputs(steps, [long, short], network, parameters)
    changed = data.sequence.copy()
    inside = slice(data.offsets[short], data.offsets[short] + steps.reach[short])
    outside = np.ones(len(changed), bool)
    outside[inside] = False
    changed[outside] += 1000.0  # every row that may stand in as padding
    elsewhere = outputs(
        tensors(data.with_features(changed, data.static)), [long, short], network, parameters
    )
    assert steps.reach[short] < steps.reach[long]
    for row, wanted in alone.items():
        torch.testing.assert_close(beside[row], wanted)
        assert torch.equal(elsewhere[row], beside[row])


@given(cohorts, st.data())
def test_no_input_of_a_decision_reveals_its_own_action_or_a_later_one(cohort, draw):
    data = cohort.make()
    number = draw.draw(st.integers(0, data.n_decisions - 1))
    stay, row = data.decisions().stay[number], data.decision_rows[number]
    action = data.action.copy()
    action[row:][action[row:] >= 0] = (action[row:][action[row:] >= 0] + 1) % data.n_actions
    rows = torch.arange(data.offsets[stay], row - data.lag + 1)
    first, second = (tensors(d, True).inputs(rows) for d in (data, replace(data, action=action)))
    assert torch.equal(first, second)


@given(cohorts, st.data())
def test_the_newest_earlier_action_is_among_the_inputs(cohort, draw):
    data = cohort.make()
    number = draw.draw(st.integers(0, data.n_decisions - 1))
    stay, row = data.decisions().stay[number], data.decision_rows[number]
    steps = tensors(data, True)
    found = steps.inputs(torch.tensor([row - data.lag]))[0, -data.n_actions :]
    before = data.action[row - 1] if row > data.offsets[stay] else -1
    wanted = torch.zeros(data.n_actions)
    if before >= 0:
        wanted[before] = 1
    assert torch.equal(found, wanted)
    assert steps.n_features == data.sequence.shape[1] + data.n_actions


def test_a_coded_sequence_reads_like_a_plain_one():
    data = BIG.make()
    code = (np.arange(data.n_steps) % 7).astype(np.int32)
    table = np.arange(14, dtype=np.uint8).reshape(7, 2)
    coded = data.with_features(Coded(table, code, 0.5), data.static)
    plain = data.with_features(coded.sequence[:], data.static)
    rows = torch.arange(data.n_steps).view(1, -1)
    assert torch.equal(tensors(coded).inputs(rows), tensors(plain).inputs(rows))


@given(cohorts, st.integers(0, 3))
def test_a_padded_batch_holds_the_same_decisions(cohort, spare):
    data = cohort.make()
    steps = tensors(data)
    stays = stays_with_a_decision(data)
    filled = torch.from_numpy(np.append(stays, np.repeat(stays[:1], spare)))
    n_steps = int(steps.reach.max()) + spare
    padded = steps.padded_batch(filled, torch.tensor(len(stays)), n_steps)
    plain = steps.batch(stays)
    assert padded.rows.shape == (n_steps, len(filled))
    assert torch.equal(padded.seen[padded.real].sort()[0], plain.seen.sort()[0])
    assert torch.equal(padded.rows.flatten()[padded.real], padded.seen[padded.real])
    assert set(padded.seen.tolist()) <= set(plain.seen.tolist())  # no row without a decision
    assert torch.equal(padded.owner[padded.real].sort()[0], plain.owner.sort()[0])
