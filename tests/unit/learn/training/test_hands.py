"""Who trains: the same bytes from one process, from several, and from threads."""

import copy
from dataclasses import replace

import pytest
import torch
from training_runs import COHORT, SETTINGS, TRANSLATIONS, etips_objective, network_of, tensors

from etips.learn.training import crew, hands, teams
from etips.learn.training.loop import train
from etips.learn.training.objectives import Sliced
from etips.models.bundle import Bundle

N_FOLDS = 3


@pytest.fixture(autouse=True)
def small_teams(monkeypatch):
    """Cut a few small networks as many large ones would be."""
    monkeypatch.setattr(teams, "WORTH", 0)
    monkeypatch.setattr(teams, "UNIT", 1)
    monkeypatch.setattr(hands, "SECONDS", 0.01)


@pytest.fixture
def allowing(monkeypatch):
    before = torch.get_num_threads()

    def allow(n_cores, forked=True):
        torch.set_num_threads(n_cores)
        monkeypatch.setattr(crew, "cores", lambda: n_cores)
        monkeypatch.setattr(crew, "can_fork", lambda: forked)

    yield allow
    torch.set_num_threads(before)


def learn(objective=None, **more):
    data = COHORT.make()
    shifts = [shift for shift in TRANSLATIONS for _ in range(N_FOLDS)]
    fold = torch.arange(data.n_stays) % N_FOLDS
    out = (fold == torch.arange(N_FOLDS)[:, None]).float().repeat(len(TRANSLATIONS), 1)
    return train(
        Bundle.start(network_of(data), range(len(shifts))).to(dtype=torch.float64),
        tensors(data),
        objective or etips_objective(data, shifts),
        weight=1 - out,
        held_out=out,
        settings=replace(SETTINGS, epochs=3, batch_size=15),
        **more,
    )


def same(one, other):
    return all(torch.equal(one.parameters[name], other.parameters[name]) for name in one.parameters)


@pytest.mark.parametrize("forked", [True, False])
@pytest.mark.parametrize("n_cores", [3])
def test_networks_are_the_same_to_the_bit_whoever_trains_them(allowing, n_cores, forked):
    told: list[list[tuple[float, ...]]] = []
    found = []
    for number in (1, n_cores):
        allowing(number, forked)
        told.append([])
        note = told[-1].append
        found.append(
            learn(report=lambda at, note=note: note((at.loss, at.held_out, at.matching_factor)))
        )
        assert torch.get_num_threads() == number
    (one, before), (many, after) = found
    assert same(one, many)
    assert told[0] == told[1]
    assert before.step == after.step
    assert torch.equal(before.best_risk, after.best_risk)


def test_a_state_kept_by_many_is_taken_up_by_one_and_the_other_way_round(allowing):
    allowing(1)
    whole, _ = learn()
    for first, second in ((3, 1), (1, 3)):
        allowing(first)
        kept = []
        learn(keep=lambda state, kept=kept: kept.append(copy.deepcopy(state)))
        inside = [state for state in kept if state.batch]
        assert inside
        for state in (inside[0], inside[-1]):
            allowing(second)
            taken_up, _ = learn(state=copy.deepcopy(state))
            assert same(whole, taken_up)


@pytest.mark.parametrize("forked", [True, False])
def test_an_error_of_an_objective_reaches_the_caller(allowing, forked):
    def fail(outputs, seen, these):
        raise ArithmeticError("no such risk")

    allowing(2, forked)
    with pytest.raises(ArithmeticError, match=r"^no such risk$"):
        learn(objective=Sliced(fail))


def test_a_few_steps_are_not_worth_processes(allowing, monkeypatch):
    def refuse(*_):
        raise AssertionError

    allowing(2)
    monkeypatch.setattr(hands, "working", refuse)
    with pytest.raises(AssertionError):
        learn()
    monkeypatch.setattr(hands, "FEW", 10**6)
    learn()


def test_pieces_are_dealt_to_the_team_with_most_left_and_never_twice_at_once():
    choose, note = hands._deal(7, [1, 3], 10, 18)
    first, second = choose(), choose()
    assert (first, second) == (("learn", 7, 1, 10, 12), ("learn", 7, 0, 10, 12))
    assert choose() is None  # both teams are at work
    note(first, None)
    assert choose() == ("learn", 7, 1, 12, 14)
