"""The small causal transformer."""

import pytest
import torch

from etips.errors import SettingError
from etips.models.encoders.transformer import CausalTransformer
from etips.models.network import Network


def test_a_state_does_not_change_with_later_steps():
    torch.manual_seed(0)
    module, steps = CausalTransformer(hidden=8, n_heads=2).module(3), torch.randn(2, 7, 3)
    for step in range(1, 7):
        later = steps.clone()
        later[:, step:] = torch.randn(2, 7 - step, 3)
        torch.testing.assert_close(module(steps)[:, :step], module(later)[:, :step])


def test_a_state_does_change_with_earlier_steps_and_with_their_order():
    torch.manual_seed(0)
    module, steps = (
        CausalTransformer(hidden=8, n_heads=2, n_layers=1).module(3),
        torch.randn(1, 6, 3),
    )
    other, swapped = steps.clone(), steps[:, [1, 0, 2, 3, 4, 5]]
    other[:, 0] += 1
    last = module(steps)[:, -1]
    assert not torch.allclose(last, module(other)[:, -1], atol=1e-4)
    assert not torch.allclose(last, module(swapped)[:, -1], atol=1e-4)


@pytest.mark.parametrize("hidden", [8, 64])
def test_its_width_is_as_asked(hidden):
    encoder = CausalTransformer(hidden)
    assert encoder.size(5) == hidden
    assert encoder.module(5)(torch.zeros(1, 1, 5)).shape == (1, 1, hidden)


def test_it_learns_to_remember_the_first_step():
    generator = torch.Generator().manual_seed(0)
    network = Network(CausalTransformer(16), 2, 0, 2)
    parameters = {k: v.requires_grad_() for k, v in network.start([0]).items()}
    optimiser = torch.optim.Adam(parameters.values(), lr=3e-3)
    for _ in range(60):
        steps = torch.randn(6, 64, 2, generator=generator)
        wanted = (steps[0, :, 0] > 0).long()
        outputs = network.outputs(
            parameters, steps, torch.zeros(64, 0), slots=torch.arange(5 * 64, 6 * 64)
        )
        risk = torch.nn.functional.cross_entropy(outputs[0], wanted)
        optimiser.zero_grad()
        risk.backward()
        optimiser.step()
    assert (outputs[0].argmax(1) == wanted).float().mean() > 0.9


@pytest.mark.parametrize(
    ("widths", "line"),
    [
        ({"hidden": 6}, "hidden: must be even and a multiple of n_heads."),
        ({"hidden": 5, "n_heads": 1}, "hidden: must be even and a multiple of n_heads."),
        ({"hidden": 0}, "hidden: must be at least 1."),
        ({"n_heads": 2.0}, "n_heads: must be a whole number."),
    ],
)
def test_a_width_that_does_not_divide_is_refused(widths, line):
    with pytest.raises(SettingError) as refusal:
        CausalTransformer(**widths)
    assert str(refusal.value) == line


def test_its_shapes_are_those_of_what_it_starts_with():
    encoder = CausalTransformer(8, n_heads=2, n_layers=3)
    started = {name: tuple(v.shape[1:]) for name, v in encoder.start(5, [1, 2]).items()}
    assert list(encoder.shapes(5)) == list(started.items())


def test_equal_ones_are_alike_so_that_their_networks_can_train_together():
    assert CausalTransformer(8, n_heads=2) == CausalTransformer(8, n_heads=2)
    assert CausalTransformer(8, n_heads=2) != CausalTransformer(8, n_heads=4)


def test_stays_without_sequential_features_have_states_too():
    encoder = CausalTransformer(8, n_heads=2)
    parameters = encoder.start(0, [1, 2])
    assert encoder.states(parameters, torch.zeros(3, 4, 0)).shape == (2, 3, 4, 8)
