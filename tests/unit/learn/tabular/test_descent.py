"""Downhill with the whole batch."""

import torch

from etips.learn.tabular.descent import descend


def test_the_bottom_of_a_bowl_is_found_and_the_start_left_alone():
    start = torch.zeros(3, dtype=torch.float64)
    goal = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64)
    sizes = torch.tensor([1.0, 10.0, 100.0], dtype=torch.float64)
    found = descend(lambda place: (sizes * (place - goal).square()).sum(), start)
    assert torch.allclose(found, goal, atol=1e-6)
    assert not start.any()
    assert not found.requires_grad


def test_it_goes_downhill_where_gradients_are_switched_off():
    with torch.no_grad():
        found = descend(lambda place: (place - 1).square().sum(), torch.zeros(2))
    assert torch.allclose(found, torch.ones(2), atol=1e-4)
