"""RETAIN: reverse time attention."""

import pytest
import torch

from etips.errors import SettingError
from etips.models.encoders.retain import RETAIN
from etips.models.network import Network


def started(n_features=3, hidden=4, seeds=(0, 1)):
    encoder = RETAIN(hidden)
    return encoder, encoder.start(n_features, seeds)


def plain(own, steps):
    """One network on one stay, as the article writes it: shape (T, hidden)."""
    hidden = own["embed"].shape[1]
    cells = {}
    for part in ("visit", "variable"):
        cell = torch.nn.GRU(hidden, hidden)
        cell.weight_ih_l0.data = own[f"{part}.weight"].T.contiguous()
        cell.weight_hh_l0.data = own[f"{part}.recurrent"].T.contiguous()
        cell.bias_ih_l0.data = own[f"{part}.bias"].clone()
        cell.bias_hh_l0.data = torch.zeros(3 * hidden)
        cell.bias_hh_l0.data[2 * hidden :] = own[f"{part}.new"]
        cells[part] = cell
    states = []
    for end in range(1, len(steps) + 1):
        embedded = steps[:end] @ own["embed"]
        backwards = embedded.flip(0)[:, None]
        g, h = (cells[part](backwards)[0][:, 0].flip(0) for part in ("visit", "variable"))
        alpha = (g @ own["visit.score"]).softmax(0)
        beta = (h @ own["variable.score"] + own["variable.shift"]).tanh()
        states.append((alpha[:, None] * beta * embedded).sum(0))
    return torch.stack(states)


def test_it_is_what_the_article_writes_down():
    encoder, parameters = started()
    steps = torch.randn(5, 2, 3, generator=torch.Generator().manual_seed(1))
    found = encoder.states(parameters, steps)
    assert found.shape == (2, 5, 2, 4)
    for j in range(2):
        own = {name: value[j] for name, value in parameters.items()}
        for b in range(2):
            torch.testing.assert_close(
                found[j, :, b], plain(own, steps[:, b]), atol=1e-5, rtol=1e-4
            )


def test_a_state_does_not_change_with_later_steps():
    encoder, parameters = started()
    steps = torch.randn(6, 3, 3, generator=torch.Generator().manual_seed(2))
    for cut in range(1, 6):
        later = steps.clone()
        later[cut:] = 7.0
        before, after = (encoder.states(parameters, s)[:, :cut] for s in (steps, later))
        torch.testing.assert_close(before, after)


def test_shares_of_steps_sum_to_one_and_there_are_none_of_steps_that_are_not_there():
    encoder, parameters = started()
    there = torch.tensor([[True, True], [True, False], [True, False]])
    seen = encoder.attend(parameters, torch.randn(3, 2, 3), there)
    torch.testing.assert_close(seen.visit.sum(1), torch.ones(2, 2))
    assert (seen.visit[:, 1:, 1] == 0).all()


def test_gradients_reach_every_parameter():
    encoder, parameters = started()
    own = {name: value.requires_grad_() for name, value in parameters.items()}
    encoder.states(own, torch.randn(4, 3, 3)).square().sum().backward()
    assert all(bool(value.grad.abs().sum() > 0) for value in own.values())


def test_it_learns_to_remember_the_first_step():
    generator = torch.Generator().manual_seed(0)
    network = Network(RETAIN(16), 2, 0, 2)
    parameters = {k: v.requires_grad_() for k, v in network.start([0]).items()}
    optimiser = torch.optim.Adam(parameters.values(), lr=1e-2)
    for _ in range(150):
        steps = torch.randn(4, 64, 2, generator=generator)
        steps[0, :, 1] = 3.0  # what marks it
        wanted = (steps[0, :, 0] > 0).long()
        slots = torch.arange(3 * 64, 4 * 64)
        outputs = network.outputs(parameters, steps, torch.zeros(64, 0), slots=slots)
        risk = torch.nn.functional.cross_entropy(outputs[0], wanted)
        optimiser.zero_grad()
        risk.backward()
        optimiser.step()
    assert (outputs[0].argmax(1) == wanted).float().mean() > 0.9


def test_its_shapes_are_those_of_what_it_starts_with():
    encoder, parameters = started(5)
    assert list(encoder.shapes(5)) == [(k, tuple(v.shape[1:])) for k, v in parameters.items()]
    assert RETAIN.from_json(encoder.to_json()) == encoder
    assert encoder.size(5) == 4


def test_a_width_of_nothing_is_refused():
    with pytest.raises(SettingError, match=r"^hidden: must be at least 1"):
        RETAIN(0)
