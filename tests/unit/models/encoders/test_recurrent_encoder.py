"""What the recurrent encoders share."""

import pytest
import torch

from etips.errors import SettingError
from etips.models.encoders.gru import GRU
from etips.models.encoders.lstm import LSTM

D, H = 4, 6


def steps(n_steps=5, n_batch=3):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(n_steps, n_batch, D, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("encoder", [GRU(H, embed=5), LSTM(H, embed=5)])
def test_units_that_read_each_step_first_are_a_rectified_layer_before_the_recurrence(encoder):
    inputs, parameters = steps(), encoder.start(D, [3, 4])
    parameters = {name: value.double().requires_grad_() for name, value in parameters.items()}
    plain = type(encoder)(H)
    for j in range(2):
        own = {name: value[j : j + 1] for name, value in parameters.items()}
        seen = (inputs @ own["embed.weight"][0] + own["embed.bias"][0]).relu()
        rest = {name: value for name, value in own.items() if not name.startswith("embed")}
        wanted = plain.states(rest, seen)[0]
        found = encoder.states(parameters, inputs)[j]
        torch.testing.assert_close(found, wanted)
        of = [parameters["embed.weight"], parameters["embed.bias"]]
        gradients = [torch.autograd.grad(v.square().sum(), of) for v in (found, wanted)]
        for ours, theirs in zip(*gradients, strict=True):
            torch.testing.assert_close(ours, theirs)
            assert ours[j].abs().max() > 0


@pytest.mark.parametrize("make", [GRU, LSTM])
@pytest.mark.parametrize(
    ("widths", "line"),
    [
        ({"hidden": 0}, "hidden: must be at least 1."),
        ({"hidden": 2.5}, "hidden: must be a whole number."),
        ({"hidden": "8"}, "hidden: must be a whole number."),
        ({"embed": -1}, "embed: must be at least 0."),
    ],
)
def test_a_width_that_is_none_is_refused(make, widths, line):
    with pytest.raises(SettingError) as refusal:
        make(**widths)
    assert str(refusal.value) == line


@pytest.mark.parametrize("encoder", [GRU(H), GRU(H, embed=5), LSTM(H), LSTM(H, embed=5)])
def test_its_shapes_are_those_of_what_it_starts_with(encoder):
    started = {name: tuple(v.shape[1:]) for name, v in encoder.start(D, [1, 2]).items()}
    assert list(encoder.shapes(D)) == list(started.items())
    assert encoder.size(D) == H
