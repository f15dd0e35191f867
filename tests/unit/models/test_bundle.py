"""Networks side by side."""

import torch

from etips.models.bundle import Bundle
from etips.models.encoders.gru import GRU
from etips.models.network import Network


def test_networks_are_selected_and_joined_in_order_and_without_ties():
    network = Network(GRU(5), 2, 2, 3)
    bundle = Bundle.start(network, [1, 2, 3])
    picked = bundle.select([2, 0, 2])
    assert picked.n_members == 3
    for name, value in bundle.parameters.items():
        assert torch.equal(picked.parameters[name], value[[2, 0, 2]])
    picked.parameters["head.bias"] += 1.0
    assert (bundle.parameters["head.bias"] == 0).all()
    joined = Bundle.join([bundle.select([1]), bundle.select([0, 2])])
    assert torch.equal(
        joined.parameters["head.weight"], bundle.parameters["head.weight"][[1, 0, 2]]
    )


def test_elsewhere_or_in_another_precision_they_are_the_same_networks():
    bundle = Bundle.start(Network(GRU(5), 2, 2, 3), [1, 2])
    finer = bundle.to(dtype=torch.float64)
    assert finer.device == torch.device("cpu")
    for name, value in bundle.parameters.items():
        assert finer.parameters[name].dtype == torch.float64
        assert torch.equal(finer.parameters[name].float(), value)
