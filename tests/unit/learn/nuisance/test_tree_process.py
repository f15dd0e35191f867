"""A process that grows trees: the same trees, and none is needed."""

import numpy as np
import pytest
from tabular_worlds import thresholds

from etips.learn.nuisance import tree_process
from etips.learn.nuisance.boosting import BoostedTrees
from etips.learn.nuisance.tree_grower import grow_members
from etips.learn.nuisance.tree_process import begin, start, stop

RNG = np.random.default_rng(1)
ROWS = RNG.normal(size=(500, 3))
ACTION = (ROWS[:, 0] + RNG.normal(size=500) > 0).astype(np.int64)
LEARNS = np.arange(500)[None] % 2 != np.arange(2)[:, None]


def orders(rounds):
    return BoostedTrees(rounds=rounds).order_classes(ROWS, ACTION, LEARNS, ~LEARNS)


def leaves(each):
    return [nodes.tobytes() for own in each for nodes in own.trees]


@pytest.fixture
def process(monkeypatch):
    monkeypatch.setattr(tree_process, "cores", lambda: 2)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(tree_process, "FEWEST", 100)
    start(thresholds(200)[0])
    (running,) = tree_process._RUNNING
    yield running
    stop()
    assert tree_process._RUNNING == []


def test_its_trees_are_ours_in_whatever_order_they_are_asked_for(process):
    given = {rounds: begin(orders(rounds), 1) for rounds in (8, 2, 5)}
    for rounds in (2, 8):  # nobody asks for the last
        assert leaves(given[rounds]()) == leaves(grow_members(orders(rounds), 1))
    assert [process] == tree_process._RUNNING  # it did so, and nobody else
    assert process._process.poll() is None


def test_where_it_is_lost_trees_grow_here(process):
    given = begin(orders(4), 1)
    process._process.kill()
    process._process.wait()
    assert leaves(given()) == leaves(grow_members(orders(4), 1))
    assert leaves(begin(orders(3), 1)()) == leaves(grow_members(orders(3), 1))


def test_it_is_started_for_rows_without_a_past_where_there_is_a_second_core(monkeypatch):
    data = thresholds(200)[0]
    started = []
    monkeypatch.setattr(tree_process, "TreeProcess", started.append)
    monkeypatch.setattr(tree_process, "_RUNNING", [])
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(tree_process, "cores", lambda: 2)
    start(data)  # too few
    monkeypatch.setattr(tree_process, "FEWEST", 100)
    monkeypatch.setattr(tree_process, "has_past", lambda _: True)
    start(data)
    monkeypatch.setattr(tree_process, "has_past", lambda _: False)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    start(data)
    assert started == []
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    start(data)
    assert started == [2]
