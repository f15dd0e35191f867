"""Every decision is answered by the network that did not learn from its stay."""

import numpy as np
import pytest
import torch
from small_worlds import ward

from etips.learn.fitting import crossfit
from etips.learn.fitting.crossfit import out_of_fold, where_stopped
from etips.learn.fitting.prepare import prepare
from etips.learn.training import memory, parallel
from etips.models import answers
from etips.models.answers import outputs_at
from etips.models.bundle import Bundle
from etips.models.encoders.gru import GRU
from etips.models.network import Network


@pytest.mark.parametrize("lag", [0, 1])
def test_each_set_answers_by_the_network_of_the_fold(lag):
    data = ward(lag=lag)
    prepared = prepare(data, n_folds=3, seed=0, device=torch.device("cpu"))
    bundle = Bundle.start(Network(GRU(4), prepared.steps.n_features, 2, 3), range(6))
    answers = out_of_fold(bundle, prepared, lambda outputs, _: outputs)
    assert answers.shape == (2, data.n_decisions, 3)
    everybody = next(iter(prepared.steps.batches(np.arange(data.n_stays), data.n_stays)))
    outputs = outputs_at(bundle, everybody, prepared.steps).detach()
    row = {int(seen): place for place, seen in enumerate(everybody.seen)}
    for decision, seen in enumerate(prepared.seen):
        fold = int(prepared.folds.fold[data.decisions().stay[decision]])
        for number in range(2):
            own = outputs[3 * number + fold, row[int(seen)]]
            assert answers[number, decision].numpy() == pytest.approx(own.numpy(), abs=1e-5)


def test_only_what_is_read_out_is_kept():
    data = ward()
    prepared = prepare(data, n_folds=2, seed=0, device=torch.device("cpu"))
    bundle = Bundle.start(Network(GRU(4), prepared.steps.n_features, 2, 3), range(2))
    rows = out_of_fold(bundle, prepared, lambda outputs, seen: seen.expand(len(outputs), -1))
    assert rows.tolist() == [prepared.seen.tolist()]


@pytest.mark.parametrize("asks", [out_of_fold, where_stopped])
def test_processes_say_the_same_to_the_bit(asks, monkeypatch):
    monkeypatch.setattr(answers, "BATCH_SIZE", 7)  # several batches
    prepared = prepare(ward(lag=1), n_folds=3, seed=0, device=torch.device("cpu"))
    bundle = Bundle.start(Network(GRU(4), prepared.steps.n_features, 2, 3), range(6))

    def said():
        found = asks(bundle, prepared, lambda outputs, _: outputs.double())
        return found if asks is out_of_fold else found[0]

    here = said()
    sizes, forked = [], parallel._forked
    monkeypatch.setattr(parallel, "_forked", lambda own: sizes.append(len(own)) or forked(own))
    monkeypatch.setattr(parallel, "n_workers", lambda: 2)
    monkeypatch.setattr(crossfit, "n_workers", lambda: 2)
    assert torch.equal(said(), here)
    assert not sizes  # so little is asked here
    monkeypatch.setattr(crossfit, "FEWEST", 1)
    assert torch.equal(said(), here)
    assert sizes == [2]
    monkeypatch.setattr(memory, "askers", lambda *_: 1)  # memory holds no second process
    assert torch.equal(said(), here)
    assert sizes == [2]
