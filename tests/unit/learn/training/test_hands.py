"""Who trains: the same bytes from one process, from several, and from threads."""

import copy
from dataclasses import replace

import pytest
import torch
from training_runs import COHORT, SETTINGS, TRANSLATIONS, etips_objective, network_of, tensors

from etips.learn.training import crew, hands, teams
from etips.learn.training.learning_step import team_steps
from etips.learn.training.loop import train
from etips.learn.training.objectives import Sliced
from etips.models.bundle import Bundle
from etips.models.encoders.gru import GRU

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


class TestOfWholeWidths:
    """Networks that are rounded alike in any team: more cores have smaller teams."""

    @pytest.fixture(autouse=True)
    def usual_teams(self, monkeypatch):
        monkeypatch.setattr(teams, "WORTH", 1000)
        monkeypatch.setattr(teams, "UNIT", 2**15)

    @staticmethod
    def learn(**more):
        data = replace(COHORT, n_stays=400, n_features=7).make()
        fold = torch.arange(data.n_stays) % 5
        out = (fold == torch.arange(5)[:, None]).float()
        return train(
            Bundle.start(network_of(data, GRU(32, embed=32)), range(5)),
            tensors(data, torch.float32),
            etips_objective(data, [0.1, 0.3, 0.5, 0.7, 0.9], torch.float32),
            weight=1 - out,
            held_out=out,
            settings=replace(SETTINGS, epochs=3, batch_size=60, learning_rate=0.02),
            **more,
        )

    @pytest.mark.parametrize("forked", [True, False])
    def test_smaller_teams_learn_the_same_to_the_bit(self, allowing, monkeypatch, forked):
        sizes = []

        def note(task, moving, running, n_cores=1):
            found = team_steps(task, moving, running, n_cores)
            sizes[-1].append([len(own.task.weight) for own in found])
            return found

        monkeypatch.setattr(hands, "team_steps", note)
        found = []
        for number in (1, 2, 3, 5):
            allowing(number, forked)
            sizes.append([])
            found.append(self.learn()[0])
        assert [own[0] for own in sizes] == [[5], [2, 3], [1, 2, 2], [1] * 5]
        assert all(same(found[0], other) for other in found[1:])

    def test_a_state_kept_by_some_is_taken_up_by_more_or_fewer(self, allowing):
        allowing(1)
        whole, _ = self.learn()
        for first, second in ((5, 1), (1, 5), (2, 3)):
            allowing(first)
            kept = []
            self.learn(keep=lambda state, kept=kept: kept.append(copy.deepcopy(state)))
            inside = [state for state in kept if state.batch]
            allowing(second)
            assert same(whole, self.learn(state=inside[len(inside) // 2])[0])

    def test_a_state_that_was_read_from_anywhere_in_memory_goes_on_the_same(self, allowing):
        allowing(1)
        kept = []
        whole, _ = self.learn(keep=lambda state: kept.append(copy.deepcopy(state)))
        state = kept[3]
        for group in (state.parameters, state.first, state.second):
            for name, value in group.items():
                astray = torch.empty(value.numel() + 1)[1:].view(value.shape)
                group[name] = astray.copy_(value)
        assert same(whole, self.learn(state=state)[0])
        assert all(not value.data_ptr() % 64 for value in state.parameters.values())
