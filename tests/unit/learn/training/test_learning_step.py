"""One step of learning."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from training_runs import (
    COHORT,
    SEEDS,
    SETTINGS,
    TRANSLATIONS,
    etips_objective,
    folds,
    network_of,
    tensors,
)

from etips.learn.training.learning_step import Task, learn_batch
from etips.learn.training.optimiser import epoch_schedule
from etips.learn.training.state import State
from etips.models.bundle import Bundle


def test_a_network_learns_from_the_features_that_are_not_hidden():
    data = COHORT.make()
    steps, network = tensors(data), network_of(data)
    weight, _ = folds()
    reached = []
    for share in (0.0, 0.999999):
        settings = replace(SETTINGS, input_dropout=share, weight_decay=0.0)
        state = State.start(Bundle.start(network, SEEDS).to(dtype=torch.float64))
        task = Task(network, steps, etips_objective(data, TRANSLATIONS), weight, settings)
        schedule = epoch_schedule(state, replace(settings, learning_rate=0.1), 0, 1).at(0)
        before = state.parameters["encoder.weight"].clone()
        learn_batch(task, state, torch.zeros(4).double(), steps.batch(np.arange(12)), schedule)
        reached.append(float((state.parameters["encoder.weight"] - before).abs().max()))
    assert reached[0] > 1e-3
    assert reached[1] == 0.0


@pytest.mark.parametrize("lag", [0, 1])
def test_a_padded_batch_teaches_what_the_plain_one_teaches(lag):
    data = replace(COHORT, lag=lag).make()
    steps = tensors(data)
    weight, _ = folds()
    network = network_of(data)
    task = Task(network, steps, etips_objective(data, TRANSLATIONS), weight, SETTINGS)
    part = np.unique(data.decisions().stay)[5:14]
    filled = torch.from_numpy(np.append(part, [part[0]] * 3))
    reached = []
    for batch in (
        steps.batch(part),
        steps.padded_batch(filled, torch.tensor(9), int(steps.reach[part].max()) + 2),
    ):
        state = State.start(Bundle.start(network, SEEDS).to(dtype=torch.float64))
        schedule = epoch_schedule(state, replace(SETTINGS, learning_rate=0.1), 0, 1).at(0)
        learn_batch(task, state, torch.zeros(4).double(), batch, schedule)
        reached.append(state.parameters)
    for name, value in reached[0].items():
        torch.testing.assert_close(reached[1][name], value, atol=1e-10, rtol=1e-8)
