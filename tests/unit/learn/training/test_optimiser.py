"""The optimiser, beside torch's own."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from etips.learn.training.optimiser import adam, epoch_schedule
from etips.learn.training.settings import Settings
from etips.learn.training.state import State
from etips.models.bundle import Bundle
from etips.models.encoders.gru import GRU
from etips.models.network import Network


def test_adam_is_torchs_adamw_with_a_clipped_gradient_and_no_decay_of_biases():
    generator = torch.Generator().manual_seed(0)
    network = Network(GRU(3), 2, 1, 2)
    bundle = Bundle.start(network, [4]).to(dtype=torch.float64)
    state, settings = State.start(bundle), Settings(learning_rate=0.01, weight_decay=0.1)
    own = {name: value[0].clone().requires_grad_() for name, value in bundle.parameters.items()}
    groups = [
        {"params": [v for v in own.values() if v.dim() == 2], "weight_decay": 0.1},
        {"params": [v for v in own.values() if v.dim() == 1], "weight_decay": 0.0},
    ]
    theirs = torch.optim.AdamW(groups, lr=0.01)
    constant = replace(settings, epochs=10**9)  # so that the rate does not fall
    for step in range(5):
        gradients = [
            torch.randn(v.shape, generator=generator, dtype=torch.float64)
            for v in state.parameters.values()
        ]
        for value, gradient in zip(own.values(), gradients, strict=True):
            value.grad = gradient[0].clone()
        torch.nn.utils.clip_grad_norm_(list(own.values()), settings.clip_norm)
        theirs.step()
        schedule = epoch_schedule(state, constant, step, 1).at(0)
        adam(state, gradients, schedule, settings.clip_norm)
    for name, value in own.items():
        torch.testing.assert_close(
            state.parameters[name][0], value.detach(), atol=1e-7, rtol=1e-6
        )  # torch's clipping adds 1e-6 to the norm


def test_the_rate_falls_along_half_a_cosine():
    state = State.start(Bundle.start(Network(GRU(2), 1, 0, 2), [0]))
    settings = Settings(epochs=2, learning_rate=1.0)
    rates = [epoch_schedule(state, settings, epoch, 4).rates.flatten() for epoch in (0, 1)]
    wanted = 0.5 * (1 + np.cos(np.pi * np.arange(8) / 8))
    assert torch.cat(rates).tolist() == pytest.approx(wanted.tolist(), rel=1e-6)
