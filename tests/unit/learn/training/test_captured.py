"""Steps that are captured once and replayed."""

import logging

import torch

from etips.learn.training import learning_step
from etips.learn.training.learning_step import Replay


def test_work_that_cannot_be_captured_is_done_as_it_is_after_a_warning(monkeypatch, caplog):
    total = torch.zeros(1)

    def work(shape):
        total.add_(shape)

    def fails(self, shape):
        work(shape)  # a warm-up that must leave no trace
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(learning_step.Replay, "_graph", fails)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    replay = Replay(work, [total])
    with caplog.at_level(logging.WARNING):
        replay(5)
        replay(3)
    assert total.item() == 8
    assert len(caplog.records) == 1
