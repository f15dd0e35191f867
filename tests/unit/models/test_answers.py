"""Networks asked about decisions."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from random_cohorts import Cohort

from etips.models.answers import (
    BATCH_SIZE,
    answer_decisions,
    batch_size_on,
    forward,
    outputs_at,
)
from etips.models.batches import step_tensors
from etips.models.bundle import Bundle
from etips.models.encoders.gru import GRU
from etips.models.network import Network

COHORT = Cohort(seed=3, n_stays=60, longest=6, n_features=3, n_static=2, gaps=0.2)
SEEDS = [11, 12, 13, 11]


def asked(data, **more):
    """Four networks, and what they say of every decision."""
    sizes = data.sequence.shape[1], data.static.shape[1], data.n_actions
    bundle, steps = Bundle.start(Network(GRU(5), *sizes), SEEDS), tensors(data)
    (outputs,) = answer_decisions(
        steps, lambda batch, _: (outputs_at(bundle, batch, steps),), axis=1, **more
    )
    return bundle, steps, outputs


def tensors(data):
    steps = step_tensors(data, earlier_actions=False)
    return replace(steps, static=steps.static.to(torch.float32))


def test_outputs_come_in_decision_order_whatever_the_batches():
    data = COHORT.make()
    _, _, outputs = asked(data, batch_size=7)
    assert outputs.shape == (4, data.n_decisions, data.n_actions)
    torch.testing.assert_close(outputs, asked(data)[2])
    one = data.decisions().stay[20]
    _, _, alone = asked(data.subset([one]))
    torch.testing.assert_close(outputs[:, data.decisions().stay == one], alone)


def test_every_answer_stands_at_the_decision_that_its_row_belongs_to():
    data = COHORT.make()
    (rows,) = answer_decisions(tensors(data), lambda batch, _: (batch.seen,), batch_size=7)
    assert rows.tolist() == data.seen_rows.tolist()


def test_several_things_may_be_kept_of_one_pass():
    data = COHORT.make()
    bundle, steps, outputs = asked(data)

    def ask(batch, _):
        said = outputs_at(bundle, batch, steps)
        return said.mean(0), said[0].argmax(-1)

    means, best = answer_decisions(steps, ask)
    torch.testing.assert_close(means, outputs.mean(0))
    assert torch.equal(best, outputs[0].argmax(-1))
    assert best.dtype == torch.long


def test_each_group_of_stays_is_asked_about_by_its_own_number():
    data = COHORT.make()
    groups = [np.arange(start, 60, 3) for start in range(3)]
    (numbers,) = answer_decisions(
        tensors(data),
        lambda batch, group: (torch.full(batch.seen.shape, group),),
        groups=groups,
        batch_size=4,
    )
    assert numbers.tolist() == (data.decisions().stay % 3).tolist()


def test_nothing_is_kept_for_a_way_back():
    bundle, steps, _ = asked(COHORT.make())
    own = {name: value.requires_grad_() for name, value in bundle.parameters.items()}
    learning = Bundle(bundle.network, own)
    (outputs,) = answer_decisions(
        steps, lambda batch, _: (outputs_at(learning, batch, steps),), axis=1
    )
    assert not outputs.requires_grad


def test_masks_hide_features_and_states():
    bundle, steps, _ = asked(COHORT.make())
    batch = steps.batch(np.arange(5))
    n, width = len(batch.seen), steps.n_features
    hidden = forward(
        bundle.network,
        bundle.parameters,
        batch,
        steps,
        keep_inputs=torch.zeros(batch.rows.numel(), width),
    )
    blank = replace(steps, plain=torch.zeros_like(steps.plain))
    torch.testing.assert_close(hidden, outputs_at(bundle, batch, blank))
    hidden = forward(bundle.network, bundle.parameters, batch, steps, keep_state=torch.zeros(n, 5))
    weight = bundle.parameters["head.weight"][:, 5:]
    torch.testing.assert_close(hidden, steps.static[batch.owner] @ weight)


@pytest.mark.parametrize(("device", "size"), [("cpu", BATCH_SIZE), ("cuda", 4096)])
def test_a_gpu_is_asked_about_more_stays_at_once(device, size):
    assert batch_size_on(torch.device(device)) == size
