"""A race: who is left behind stays as it was, who goes on becomes what it would have become."""

import copy
import hashlib
import math

import numpy as np
import pytest
import torch
from training_runs import COHORT, N_STAYS, SETTINGS, etips_objective, network_of, tensors

from etips.learn.training import crew, learning_step, teams
from etips.learn.training.loop import train
from etips.learn.training.race import Race
from etips.learn.training.state import State
from etips.models.bundle import Bundle

SHIFTS = [0.1, 0.3, 0.5, 0.7]
N_FOLDS = 3
RATES = torch.linspace(0.01, 0.06, len(SHIFTS) * N_FOLDS)


def start(device="cpu", dtype=torch.float64):
    data = COHORT.make()
    seeds = list(range(N_FOLDS)) * len(SHIFTS)
    return Bundle.start(network_of(data), seeds).to(device, dtype)


def objective(sets, dtype=torch.float64):
    return etips_objective(COHORT.make(), np.repeat([SHIFTS[s] for s in sets], N_FOLDS), dtype)


def race(verdicts, *, dtype=torch.float64, seen=None):
    """A race with the given survivors after each heat."""

    def judge(networks, sets, epoch):
        if seen is not None:
            seen.append((networks, list(sets), epoch))
        return [number for number in sets if number in verdicts[epoch]]

    return Race(N_FOLDS, tuple(verdicts), judge, lambda sets: objective(sets, dtype))


def run(own=None, *, device="cpu", dtype=torch.float64, **more):
    data = COHORT.make()
    fold = np.random.default_rng(1).integers(0, N_FOLDS, N_STAYS)
    out = np.stack([fold == k for k in range(N_FOLDS)] * len(SHIFTS))
    held_out = torch.from_numpy(out).to(device, torch.float32)
    return train(
        start(device, dtype),
        tensors(data, dtype, device=torch.device(device)),
        objective(range(len(SHIFTS)), dtype),
        weight=1 - held_out,
        held_out=held_out,
        settings=SETTINGS,
        learning_rates=RATES.to(device),
        race=own,
        **more,
    )


def bests(**more):
    """Every network at its best so far, after every epoch of a training without a race."""
    kept = {}

    def keep(state):
        if state.batch == 0:
            kept[state.epoch] = copy.deepcopy(state.best)

    return run(keep=keep, **more), kept


def digest(bundle):
    values = b"".join(value.numpy().tobytes() for value in bundle.parameters.values())
    return hashlib.sha256(values).hexdigest()


@pytest.mark.parametrize("worth", [0, math.inf], ids=["in teams", "all together"])
def test_those_left_behind_stay_as_they_were_and_the_others_become_what_they_would(
    worth, monkeypatch
):
    monkeypatch.setattr(teams, "WORTH", worth)
    (whole, usual), kept = bests()
    raced, state = run(race({1: {0, 1, 3}, 3: {1}}))
    last = {0: 3, 1: usual.epoch, 2: 1, 3: 3}
    for name, value in raced.parameters.items():
        for number, epoch in last.items():
            own = slice(number * N_FOLDS, (number + 1) * N_FOLDS)
            wanted = whole.parameters[name] if number == 1 else kept[epoch][name]
            torch.testing.assert_close(value[own], wanted[own], atol=1e-9, rtol=1e-9)
    assert state.members.tolist() == [3, 4, 5]
    assert raced.trained[6:9] == ((1, False),) * 3
    assert raced.trained[3:6] == whole.trained[3:6]
    assert max(raced.trained[0:3]) == (3, False)
    assert all(own.in_race for own in whole.trained)


def test_networks_left_behind_cost_nothing_more(monkeypatch):
    monkeypatch.setattr(teams, "WORTH", math.inf)  # all in the race are one team
    step, at_once = learning_step.learn_batch, []

    def noted(task, moving, batch, schedule):
        at_once.append((len(task.weight), len(moving.parameters["head.bias"])))
        step(task, moving, batch, schedule)

    monkeypatch.setattr(learning_step, "learn_batch", noted)
    _, state = run(race({1: {0, 2}, 2: {2}}))
    n_batches = -(-int((tensors(COHORT.make()).reach > 0).sum()) // SETTINGS.batch_size)
    assert at_once[:n_batches] == [(12, 12)] * n_batches
    assert at_once[n_batches : 2 * n_batches] == [(6, 6)] * n_batches
    assert max(at_once[2 * n_batches :]) == (3, 3)
    assert all(len(value) == 3 for value in state.moving.tensors())


def test_a_heat_sees_those_in_the_race_at_their_best_so_far():
    (_, _), kept = bests()
    seen = []
    run(race({1: {0, 2, 3}, 2: {0, 3}}, seen=seen))
    assert [(sets, epoch) for _, sets, epoch in seen] == [([0, 1, 2, 3], 1), ([0, 2, 3], 2)]
    networks, sets, epoch = seen[1]
    own = [number * N_FOLDS + fold for number in sets for fold in range(N_FOLDS)]
    for name, value in networks.parameters.items():
        torch.testing.assert_close(value, kept[epoch][name][own], atol=1e-9, rtol=1e-9)


class InterruptError(Exception):
    pass


@pytest.mark.parametrize("worth", [0, math.inf], ids=["in teams", "all together"])
@pytest.mark.parametrize("at_step", [6, 7, 8, 14, 15, 22])
def test_a_race_goes_on_where_it_stood(at_step, worth, monkeypatch):
    """Before a heat, at it, and after it: seven batches an epoch."""
    monkeypatch.setattr(teams, "WORTH", worth)
    verdicts, dtype = {1: {0, 1, 3}, 2: {1}}, torch.float32
    whole, _ = run(race(verdicts, dtype=dtype), dtype=dtype)

    def interrupt(state):
        if state.step == at_step:
            raise InterruptError

    state = State.start(start(dtype=dtype))
    with pytest.raises(InterruptError):
        run(race(verdicts, dtype=dtype), dtype=dtype, state=state, keep=interrupt)
    resumed, _ = run(race(verdicts, dtype=dtype), dtype=dtype, state=state)
    assert digest(resumed) == digest(whole)
    assert resumed.trained == whole.trained


@pytest.mark.parametrize("forked", [True, False], ids=["processes", "threads"])
def test_a_race_comes_to_the_same_bytes_whoever_trains(forked, monkeypatch):
    monkeypatch.setattr(teams, "WORTH", 0)
    monkeypatch.setattr(crew, "_can_fork", lambda: forked)
    before, found = torch.get_num_threads(), []
    verdicts, dtype = {1: {0, 1, 3}, 2: {1}}, torch.float32
    for n_cores in (1, 2):
        torch.set_num_threads(n_cores)
        monkeypatch.setattr(crew, "cores", lambda n_cores=n_cores: n_cores)
        found.append(run(race(verdicts, dtype=dtype), dtype=dtype)[0])
    torch.set_num_threads(before)
    assert digest(found[0]) == digest(found[1])
    assert found[0].trained == found[1].trained


def test_a_race_that_everybody_goes_on_in_is_a_training_without_one():
    whole, _ = run(dtype=torch.float32)
    raced, _ = run(race({2: {0, 1, 2, 3}}, dtype=torch.float32), dtype=torch.float32)
    assert digest(raced) == digest(whole)


def test_sets_and_their_networks_are_told_from_each_other():
    own = race({})
    assert own.members([0, 2]) == [0, 1, 2, 6, 7, 8]
    assert own.sets([0, 1, 2, 6, 7, 8]) == [0, 2]
    assert own.sets([]) == own.members([]) == []


@pytest.mark.gpu
def test_a_race_on_a_gpu_captures_its_steps_anew_and_comes_to_the_same():
    """After two heats three shapes of the bundle have been captured."""
    verdicts, dtype = {1: {0, 1, 3}, 3: {1}}, torch.float32
    here, own = run(race(verdicts, dtype=dtype), dtype=dtype)
    there, state = run(race(verdicts, dtype=dtype), dtype=dtype, device="cuda")
    assert state.members.tolist() == own.members.tolist() == [3, 4, 5]
    assert there.trained == here.trained
    for name, value in here.parameters.items():
        torch.testing.assert_close(there.parameters[name].cpu(), value, atol=2e-3, rtol=2e-3)


@pytest.mark.gpu
def test_networks_in_a_race_on_a_gpu_become_what_they_become_without_one():
    dtype = torch.float32
    whole, _ = run(dtype=dtype, device="cuda")
    raced, _ = run(race({1: {1, 2}, 2: {2}}, dtype=dtype), dtype=dtype, device="cuda")
    for name, value in whole.parameters.items():
        torch.testing.assert_close(raced.parameters[name][6:9], value[6:9], atol=1e-3, rtol=1e-3)
