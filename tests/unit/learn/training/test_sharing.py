"""Trainings that share a device: stopped from outside, each on a stream of its own."""

import threading

import pytest
import torch
from small_worlds import CLINIC, small

from etips.learn import PredictiveModel
from etips.learn.learners.learner import fit_together
from etips.learn.training import memory
from etips.learn.training.sharing import Sharing, UnwantedError, require_wanted


def test_a_training_is_stopped_once_nobody_waits_for_it():
    require_wanted(None)
    halt = threading.Event()
    require_wanted(halt)
    halt.set()
    with pytest.raises(UnwantedError):
        require_wanted(halt)


def test_a_learner_that_is_not_wanted_stops_alone_and_beside_others():
    sharing, log = Sharing(), CLINIC.log(20, seed=0)
    sharing.halt.set()
    with pytest.raises(UnwantedError):
        PredictiveModel(**small()).fit(log, sharing=sharing)
    with pytest.raises(UnwantedError):
        fit_together([PredictiveModel(**small()) for _ in range(2)], log, sharing=sharing)


def test_those_that_share_a_device_share_its_memory(monkeypatch, trained):
    monkeypatch.setattr(memory, "estimate", lambda *_: 10)
    monkeypatch.setattr(memory, "free", lambda _: 21 / memory.SHARE)  # of two networks
    log = CLINIC.log(20, seed=0)
    PredictiveModel(**small()).fit(log)
    PredictiveModel(**small()).fit(log, sharing=Sharing(2))
    assert trained == [2, 1, 1]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_there_is_no_stream_to_take():
    with Sharing(3).on_own_stream():
        assert not torch.cuda.is_initialized()
