"""The encoder without memory."""

import pytest
import torch

from etips.errors import SettingError
from etips.models.encoders.last_step import LastStep


def test_a_state_is_its_step_through_rectified_units():
    encoder = LastStep(4)
    parameters = encoder.start(3, [1, 2])
    inputs = torch.randn(5, 6, 3, generator=torch.Generator().manual_seed(0))
    states = encoder.states(parameters, inputs)
    weight, bias = parameters["weight"][1], parameters["bias"][1]
    torch.testing.assert_close(states[1], (inputs @ weight + bias).relu())
    assert states.shape == (2, 5, 6, 4)


def test_a_network_depends_on_its_own_seed_alone():
    alone, beside = LastStep(4).start(3, [2]), LastStep(4).start(3, [1, 2])
    assert all(torch.equal(alone[name][0], beside[name][1]) for name in alone)


def test_its_width_is_a_whole_number_and_comes_back_from_its_document():
    assert LastStep.from_json(LastStep(9).to_json()) == LastStep(9)
    with pytest.raises(SettingError, match=r"^hidden"):
        LastStep(0)
