"""A training that nobody keeps: it begins at its beginning, and still says what it is called."""

from dataclasses import replace

import torch

from etips.learn.fitting.trainer import Checkpoints, NoCheckpoints
from etips.learn.training.epoch_report import EpochReport
from etips.learn.training.settings import Settings
from etips.learn.training.state import State
from etips.models.bundle import Bundle
from etips.models.encoders.gru import GRU
from etips.models.network import Network


def test_where_nothing_is_kept_a_stage_begins_at_its_beginning():
    nowhere, start = NoCheckpoints(), Bundle.start(Network(GRU(2), 2, 0, 2), [0])
    assert isinstance(nowhere, Checkpoints)
    assert nowhere.part_size("policy") is None
    nowhere.note("policy", "something")
    stage = nowhere.stage("policy", start, Settings())
    stage.keep(State.start(start))
    assert stage.finish(start) is start
    again = nowhere.stage("policy", start, Settings())
    assert again.state is again.networks is None
    assert all(torch.isfinite(value).all() for value in start.parameters.values())


def test_a_stage_that_nobody_keeps_says_its_name_where_somebody_listens():
    stage = NoCheckpoints().stage("policy", Bundle.start(Network(GRU(2), 2, 0, 2), [0]), Settings())
    assert stage.reporting(None) is None
    told = []
    standing = EpochReport(1, 9, loss=0.5, held_out=0.5, seconds_left=3.0)
    stage.reporting(told.append)(standing)
    assert told == [replace(standing, stage="policy")]


def test_an_object_without_stages_keeps_nothing():
    assert not isinstance("run", Checkpoints)
