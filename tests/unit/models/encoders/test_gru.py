"""The gated recurrent unit as an encoder; its equations are tested with the kernels."""

import torch

from etips.models.encoders.gru import GRU


def test_a_gru_starts_uniform_within_one_over_the_root_of_its_width():
    values = torch.cat([value.flatten() for value in GRU(64).start(5, [0]).values()])
    assert values.abs().max() <= 1 / 8
    assert values.abs().max() > 0.124
    assert abs(values.mean()) < 0.005


def test_a_gru_of_torch_with_the_same_numbers_has_the_same_states():
    encoder, inputs = GRU(6), torch.randn(5, 3, 4, dtype=torch.float64)
    own = {name: value.double() for name, value in encoder.start(4, [7]).items()}
    theirs = torch.nn.GRU(4, 6, dtype=torch.float64)
    bias = torch.cat([torch.zeros(12, dtype=torch.float64), own["new"][0]])
    theirs.load_state_dict(
        {
            "weight_ih_l0": own["weight"][0].T,
            "weight_hh_l0": own["recurrent"][0].T,
            "bias_ih_l0": own["bias"][0],
            "bias_hh_l0": bias,
        }
    )
    torch.testing.assert_close(encoder.states(own, inputs)[0], theirs(inputs)[0])
