"""Whether networks are rounded alike, alone or beside others."""

import pytest
import torch

from etips.learn.training import rounding
from etips.learn.training.rounding import is_rounded_alike
from etips.models import network as network_module
from etips.models.encoders.gru import GRU
from etips.models.encoders.last_step import LastStep
from etips.models.encoders.lstm import LSTM
from etips.models.encoders.transformer import CausalTransformer
from etips.models.network import Network


@pytest.fixture(autouse=True)
def forget():
    is_rounded_alike.cache_clear()
    yield
    is_rounded_alike.cache_clear()


@pytest.mark.parametrize("encoder", [GRU(64, embed=64), LSTM(32), LastStep(32)], ids=repr)
@pytest.mark.parametrize("n_static", [0, 3])
def test_networks_of_whole_widths_are(encoder, n_static):
    assert is_rounded_alike(Network(encoder, 7, n_static, 10), 101, torch.float32)


@pytest.mark.parametrize(
    "network",
    [
        Network(GRU(16, embed=32), 7, 0, 3),  # sigmoids are left over at the end
        Network(GRU(32, embed=16), 7, 0, 3),
        Network(GRU(32), 7, 0, 3, additive=True),
        Network(CausalTransformer(hidden=32, n_heads=2, n_layers=1), 7, 0, 3),
    ],
)
def test_of_others_nobody_says_so(network):
    assert not is_rounded_alike(network, 101, torch.float32)


def test_a_machine_whose_products_depend_on_their_neighbours_is_found_out(monkeypatch):
    def depending(left, right):
        return (left @ right) * (1 + len(right) * 1e-6)

    monkeypatch.setattr(network_module, "product", depending)
    assert not is_rounded_alike(Network(GRU(32), 7, 0, 3), 101, torch.float32)


def test_threads_are_left_as_they_were():
    before = torch.get_num_threads()
    is_rounded_alike(Network(GRU(32), 7, 0, 3), 50, torch.float32)
    assert torch.get_num_threads() == before


def test_it_is_tried_out_on_some_stays_however_large_a_batch_is(monkeypatch):
    sizes = []
    monkeypatch.setattr(rounding, "_is_alike", lambda *told: bool(sizes.append(told[2])) or True)
    assert is_rounded_alike(Network(LastStep(32), 7, 0, 3), 4096, torch.float32)
    assert max(sizes) == rounding._STAYS
