"""The GRU by hand; beside torch's own it is in test_recurrent.py."""

import math

import pytest
import torch

from etips.models.kernels.gru_kernel import gru


def sigmoid(value):
    return 1 / (1 + math.exp(-value))


def test_two_steps_of_one_unit_by_hand():
    weight, recurrent = [0.5, -0.3, 0.8], [0.2, 0.4, -0.6]
    bias, new = [0.1, 0.2, -0.1], 0.3
    state, wanted = 0.0, []
    for value in (1.5, -0.7):
        reset, update = (
            sigmoid(value * weight[k] + state * recurrent[k] + bias[k]) for k in (0, 1)
        )
        candidate = math.tanh(value * weight[2] + bias[2] + reset * (state * recurrent[2] + new))
        state = (1 - update) * candidate + update * state
        wanted.append(state)
    shapes = (
        (weight, (1, 1, 3)),
        (recurrent, (1, 1, 3)),
        (bias, (1, 3)),
        ([new], (1, 1)),
    )
    parameters = [torch.tensor(values, dtype=torch.float64).view(s) for values, s in shapes]
    states = gru(torch.tensor([1.5, -0.7], dtype=torch.float64).view(2, 1, 1), *parameters)
    assert states.flatten().tolist() == pytest.approx(wanted, rel=1e-12)
