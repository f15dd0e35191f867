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
    rates = torch.tensor([0.01], dtype=torch.float64)
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
        state.step = step
        schedule = epoch_schedule(state, constant, 1, learning_rates=rates).at(0)
        adam(state.moving, gradients, schedule, settings.clip_norm)
    for name, value in own.items():
        torch.testing.assert_close(
            state.parameters[name][0], value.detach(), atol=1e-7, rtol=1e-6
        )  # torch's clipping adds 1e-6 to the norm


def test_the_rate_falls_along_half_a_cosine_and_is_the_same_when_resumed():
    state = State.start(Bundle.start(Network(GRU(2), 1, 0, 2), [0]))
    settings, rates = Settings(epochs=2), torch.tensor([1.0])
    first = epoch_schedule(state, settings, 4, learning_rates=rates).rates.flatten()
    state.step, state.epoch = 4, 1
    second = epoch_schedule(state, settings, 4, learning_rates=rates).rates.flatten()
    wanted = 0.5 * (1 + np.cos(np.pi * np.arange(8) / 8))
    assert torch.cat([first, second]).tolist() == pytest.approx(wanted.tolist(), rel=1e-6)
    state.step, state.batch = 6, 2  # in the midst of the second epoch
    assert torch.equal(
        epoch_schedule(state, settings, 4, learning_rates=rates).rates.flatten(), second
    )


def test_the_length_of_a_gradient_is_the_same_to_the_bit_whatever_stands_beside_it():
    generator = torch.Generator().manual_seed(0)
    network = Network(GRU(32, embed=32), 7, 0, 5)
    state = State.start(Bundle.start(network, range(45)))
    gradients = [torch.randn(v.shape, generator=generator) for v in state.parameters.values()]
    schedule = epoch_schedule(state, Settings(), 1).at(0)
    for these in (slice(0, 1), slice(4, 6), slice(1, 45, 5)):
        each = []
        for chosen in (slice(0, 45), these):
            own = State.start(Bundle.start(network, range(45)))
            some = [gradient[chosen] for gradient in gradients]
            adam(own.moving.of(chosen), some, schedule.of(chosen), 1.0)
            each.append(own.first)
        for name, first in each[0].items():
            assert torch.equal(first[these], each[1][name][these])
