"""Adam by a kernel of our own moves as Adam by operations of torch does."""

import pytest
import torch

from etips.learn.training import optimiser
from etips.learn.training.optimiser import Schedule
from etips.learn.training.state import State
from etips.models.kernels import compiling

J = 3


def moved(device, *, kernel, monkeypatch):
    """Parameters and moments after a step, from the same start."""
    monkeypatch.setattr(compiling, "can_compile", lambda: kernel)
    random = torch.Generator().manual_seed(0)

    def some():
        shapes = {"weight": (J, 5, 7), "bias": (J, 2000), "new": (J, 1)}
        made = {name: torch.randn(own, generator=random) for name, own in shapes.items()}
        return {name: own.to(device) for name, own in made.items()}

    parameters, first = some(), some()
    second = {name: own.square() for name, own in some().items()}
    gradients = [own.transpose(0, -1).contiguous().transpose(0, -1) for own in some().values()]
    rates = torch.tensor([0.01, 0.0, 0.02], device=device)  # the second has stopped
    kept = torch.tensor([0.99, 1.0, 0.9], device=device)
    first_by, second_by = torch.tensor(0.5, device=device), torch.tensor(0.1, device=device)
    schedule = Schedule(rates, kept, first_by, second_by, torch.tensor(3, device=device))
    before = {name: own.clone() for name, own in parameters.items()}
    none = torch.zeros(J, device=device)
    state = State(parameters, first, second, {}, none, none, none)
    optimiser.adam(state, gradients, schedule, 1.0)
    return before, state


@pytest.mark.gpu
def test_the_kernel_moves_parameters_and_moments_as_operations_of_torch_do(monkeypatch):
    pytest.importorskip("triton")
    _, plain = moved("cuda", kernel=False, monkeypatch=monkeypatch)
    before, ours = moved("cuda", kernel=True, monkeypatch=monkeypatch)
    for group in ("parameters", "first", "second"):
        for name, value in getattr(plain, group).items():
            torch.testing.assert_close(getattr(ours, group)[name], value, atol=1e-6, rtol=1e-5)
    assert torch.equal(ours.parameters["bias"][1], before["bias"][1])  # one that has stopped
    assert not torch.equal(ours.parameters["bias"][0], before["bias"][0])


def test_on_a_cpu_operations_of_torch_do_it_whatever_can_be_compiled(monkeypatch):
    _, one = moved("cpu", kernel=True, monkeypatch=monkeypatch)
    _, other = moved("cpu", kernel=False, monkeypatch=monkeypatch)
    assert all(torch.equal(own, other.parameters[name]) for name, own in one.parameters.items())
