"""Folds at the same time: what is found is what is found in turn, to the bit."""

import os

import numpy as np
import pytest
import torch

from etips.evaluation.log import Log
from etips.learn.fitting import folds_at_once
from etips.learn.fitting.folds_at_once import AtOnce
from etips.learn.training import crew


@pytest.fixture(params=["processes", "threads"])
def three_cores(request, monkeypatch):
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    monkeypatch.setattr(crew, "cores", lambda: 3)
    monkeypatch.setattr(crew, "can_fork", lambda: request.param == "processes")
    yield request.param
    torch.set_num_threads(before)


def test_every_fold_writes_its_rows_wherever_it_is_done(three_cores):
    folds = AtOnce()
    rows, here = folds.zeros((4, 2), np.float64), os.getpid()

    def work(number):
        rows[number] = number, os.getpid() == here

    folds.do(work, 4)
    assert rows[:, 0].tolist() == [0, 1, 2, 3]
    assert rows[:, 1].any() == (three_cores == "threads")


def test_a_work_begins_when_the_one_before_is_done_by_the_same_processes(three_cores):
    folds = AtOnce()
    first, second = (folds.zeros((3, 2), np.int64) for _ in range(2))

    def write(number):
        first[number] = number + 1, os.getpid()

    def add(number):
        second[number] = first[:, 0].sum(), os.getpid()

    folds.do_each([(write, 3), (add, 2)])
    assert second[:, 0].tolist() == [6, 6, 0]
    assert set(second[:2, 1].tolist()) <= set(first[:, 1].tolist())
    AtOnce(1).do_each([(write, 1), (add, 3)])
    assert second[:, 0].tolist() == [6, 6, 6]


def test_no_more_work_at_the_same_time_than_memory_holds(three_cores, monkeypatch):
    sizes, working = [], folds_at_once.working
    monkeypatch.setattr(folds_at_once, "working", lambda *a: sizes.append(a[0]) or working(*a))
    for held in (2, 9, 1, 0):
        AtOnce(held=held).do(lambda _: None, 4)
    assert sizes == [2, 3]  # by one alone, no crew is asked


def test_on_one_core_all_is_done_here(monkeypatch):
    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr("etips.learn.fitting.folds_at_once.working", refuse)
    done = []
    AtOnce().do(done.append, 3)
    assert done == [0, 1, 2]


def test_what_a_log_leads_to_expect_is_the_same_to_the_bit(three_cores):
    rng, n = np.random.default_rng(1), 500
    rows, action = rng.normal(size=(n, 3)), rng.integers(0, 2, n)
    loss, even = rows[:, 0] * action + rng.normal(size=n), np.full((n, 2), 0.5)
    own = {"propensities": even, "predicted": rng.normal(size=(n, 2)), "features": rows}
    one, other = (
        Log(loss, action, np.full(n, 0.5), np.arange(n) // 2, 2, **own, **folds)
        for folds in ({}, {"folds": AtOnce()})
    )
    assert np.array_equal(one.expected.by_action, other.expected.by_action)
    assert np.array_equal(one.expected_residual.plain, other.expected_residual.plain)
    assert isinstance(other.beside(even, even).folds, AtOnce)
