"""The long short-term memory as an encoder; its equations are tested with the kernels."""

import torch

from etips.models.encoders.lstm import LSTM


def test_forget_gates_start_open():
    bias = LSTM(16).start(5, [0, 1])["bias"].view(2, 4, 16)
    assert (bias[:, 1] > 0.7).all()
    assert (bias[:, [0, 2, 3]].abs() <= 0.25).all()


def test_what_came_first_still_counts_after_many_steps():
    encoder = LSTM(16)
    parameters = encoder.start(3, [0])
    inputs = torch.zeros(20, 1, 3)
    inputs[0] = 1.0
    moved = encoder.states(parameters, inputs) - encoder.states(parameters, torch.zeros(20, 1, 3))
    assert moved[0, -1].abs().max() > 1e-3
