"""The LSTM by hand; beside torch's own it is in test_recurrent.py."""

import math

import pytest
import torch

from etips.models.kernels.lstm_kernel import lstm


def sigmoid(value):
    return 1 / (1 + math.exp(-value))


def test_two_steps_of_one_unit_by_hand():
    weight, recurrent = [0.5, -0.3, 0.8, 0.9], [0.2, 0.4, -0.6, 0.7]
    bias = [0.1, 1.2, -0.1, 0.3]
    state, memory, wanted = 0.0, 0.0, []
    for value in (1.5, -0.7):
        entry, forget, output, cell = (
            value * weight[k] + state * recurrent[k] + bias[k] for k in range(4)
        )
        memory = sigmoid(forget) * memory + sigmoid(entry) * math.tanh(cell)
        state = sigmoid(output) * math.tanh(memory)
        wanted.append(state)
    shapes = ((weight, (1, 1, 4)), (recurrent, (1, 1, 4)), (bias, (1, 4)))
    parameters = [torch.tensor(values, dtype=torch.float64).view(s) for values, s in shapes]
    states = lstm(torch.tensor([1.5, -0.7], dtype=torch.float64).view(2, 1, 1), *parameters)
    assert states.flatten().tolist() == pytest.approx(wanted, rel=1e-12)
