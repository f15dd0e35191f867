"""Our recurrences against torch's own, network by network, forwards and backwards."""

import pytest
import torch
from recurrences import TOLERANCE, B, H, J, inputs_of, ours, parameters_of, theirs

from etips.models.kernels import recurrent


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("n_steps", [1, 2, 7])
@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_states_and_gradients_equal_those_of_torch(kind, n_steps, shared, dtype):
    inputs, parameters = inputs_of(n_steps, dtype, shared), parameters_of(kind, dtype)
    mine, other = ours(kind, inputs, parameters), theirs(kind, inputs, parameters)
    assert mine.shape == (J, n_steps, B, H)
    close = {"atol": TOLERANCE[dtype], "rtol": TOLERANCE[dtype]}
    torch.testing.assert_close(mine, other, **close)
    weight = torch.randn(mine.shape, generator=torch.Generator().manual_seed(2), dtype=dtype)
    gradients = [torch.autograd.grad(x, [inputs, *parameters], weight) for x in (mine, other)]
    for left, right in zip(*gradients, strict=True):
        torch.testing.assert_close(left, right, **close)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("n_steps", [1, 3])
@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_the_written_out_gradient_is_the_gradient(kind, n_steps, shared):
    inputs = inputs_of(n_steps, torch.float64, shared)
    parameters = parameters_of(kind, torch.float64)
    assert torch.autograd.gradcheck(
        lambda x, *p: ours(kind, x, p), (inputs, *parameters), atol=1e-7
    )


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_a_gradient_that_nobody_asked_for_changes_nothing(kind):
    inputs, parameters = inputs_of(4, torch.float64, True), parameters_of(kind, torch.float64)
    with_inputs = torch.autograd.grad(ours(kind, inputs, parameters).sum(), parameters)
    without = torch.autograd.grad(ours(kind, inputs.detach(), parameters).sum(), parameters)
    assert all(torch.equal(a, b) for a, b in zip(with_inputs, without, strict=True))


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_networks_in_blocks_give_what_they_give_together(kind, shared, monkeypatch):
    inputs, parameters = inputs_of(4, torch.float64, shared), parameters_of(kind, torch.float64)

    def run():
        states = ours(kind, inputs, parameters)
        return [states, *torch.autograd.grad(states.square().sum(), [inputs, *parameters])]

    together = run()
    monkeypatch.setattr(recurrent, "_BLOCK", 2 * B * H)
    for left, right in zip(together, run(), strict=True):
        torch.testing.assert_close(left, right, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_without_gradients_the_states_are_the_same(kind):
    inputs, parameters = inputs_of(5, torch.float32, True), parameters_of(kind, torch.float32)
    plain = [parameter.detach() for parameter in parameters]
    assert torch.equal(ours(kind, inputs.detach(), plain), ours(kind, inputs, parameters))


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_enormous_inputs_saturate_and_stay_finite(kind):
    inputs = (inputs_of(3, torch.float32, True).detach() * 1e6).requires_grad_()
    parameters = parameters_of(kind, torch.float32)
    states = ours(kind, inputs, parameters)
    gradients = torch.autograd.grad(states.sum(), [inputs, *parameters])
    assert states.abs().max() <= 1
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_gradients_of_little_precision_are_added_up_in_float32():
    """256 + 1 is 256 in bfloat16, however often it is added."""
    like = torch.zeros(1, 1, 1, dtype=torch.bfloat16)
    total = recurrent.sums(like, (1, 1, 1))
    assert total.dtype == torch.float32
    one = torch.ones(1, 1, 1, dtype=torch.bfloat16)
    recurrent.add_product(total, 256 * one, one)
    for _ in range(100):
        recurrent.add_product(total, one, one)
    assert total.item() == 356
    assert recurrent.sums(like.double(), (2,)).dtype == torch.float64


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_on_a_gpu_bfloat16_rounds_as_on_the_cpu(kind):
    inputs, parameters = inputs_of(7, torch.float32, True), parameters_of(kind, torch.float32)
    found = []
    for device in ("cpu", "cuda"):
        moved = [x.detach().to(device).requires_grad_() for x in (inputs, *parameters)]
        with torch.autocast(device, torch.bfloat16):
            states = ours(kind, moved[0], moved[1:])
        gradients = torch.autograd.grad(states.float().cos().sum(), moved)
        found.append([x.float().cpu() for x in (states, *gradients)])
    for left, right in zip(*found, strict=True):
        assert (left - right).norm() / left.norm() < 0.05


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_on_a_gpu_states_and_gradients_equal_those_on_the_cpu(kind, shared, dtype):
    inputs, parameters = inputs_of(7, dtype, shared), parameters_of(kind, dtype)
    found = []
    for device in ("cpu", "cuda"):
        moved = [x.detach().to(device).requires_grad_() for x in (inputs, *parameters)]
        states = ours(kind, moved[0], moved[1:])
        gradients = torch.autograd.grad(states.cos().sum(), moved)
        found.append([x.cpu() for x in (states, *gradients)])
    for left, right in zip(*found, strict=True):
        torch.testing.assert_close(left, right, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])
