"""What is hidden while learning."""

import pytest
import torch

from etips.learn.training.learning_step import Task, dropout_masks
from etips.learn.training.settings import Settings
from etips.models.batches import Batch
from etips.models.encoders.gru import GRU
from etips.models.network import Network


def both_masks(key, rows, **shares):
    network = Network(GRU(64), 64, 1, 2)
    task = Task(network, None, None, None, Settings(**shares))
    batch = Batch(rows, None, None, None, None)
    head = torch.zeros(1, 65, 2)
    return dropout_masks(task, batch, torch.tensor(key), head)


def masks(share, key, rows):
    return both_masks(key, rows, dropout=share).state


def test_dropout_hides_its_share_and_scales_the_rest():
    mask = masks(0.3, 17, torch.arange(4000).view(4, 1000))
    assert mask.shape == (4000, 64)
    assert mask.unique().tolist() == pytest.approx([0.0, 1 / 0.7])
    hidden = (mask == 0).double()
    noise = (0.3 * 0.7 / hidden.numel()) ** 0.5
    assert abs(float(hidden.mean()) - 0.3) < 5 * noise
    assert (hidden.mean(0) - 0.3).abs().max() < 5 * (0.3 * 0.7 / 4000) ** 0.5  # every unit
    assert torch.corrcoef(hidden.T[:8]).fill_diagonal_(0).abs().max() < 5 / 4000**0.5
    assert masks(0.0, 17, torch.arange(4).view(2, 2)) is None


def test_dropout_depends_on_step_and_row_and_not_on_where_the_row_stands():
    rows = torch.arange(1000).view(10, 100)
    mask = masks(0.5, 3, rows)
    assert torch.equal(masks(0.5, 3, rows.flip(1)), mask.view(10, 100, 64).flip(1).flatten(0, 1))
    other = masks(0.5, 4, rows)
    assert abs(float((mask == other).double().mean()) - 0.5) < 0.02


def test_features_are_hidden_apart_from_states():
    rows = torch.arange(1000).view(10, 100)
    state, inputs = both_masks(3, rows, dropout=0.5, input_dropout=0.5)
    assert abs(float((state == inputs).double().mean()) - 0.5) < 0.02
    assert both_masks(3, rows, input_dropout=0.5).state is None
