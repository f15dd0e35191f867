"""Actions that must not be taken."""

import pytest
import torch

from etips.models.network import forbid


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_forbidden_action_has_exactly_no_probability_and_no_gradient(dtype):
    logits = torch.tensor([[[5.0, 80.0, -60.0], [0.0, 0.0, 0.0]]], dtype=dtype, requires_grad=True)
    allowed = torch.tensor([[True, False, True], [False, True, True]])
    policy = forbid(logits, allowed).softmax(-1)
    assert (policy[0][~allowed] == 0).all()
    assert policy[0, 1].tolist() == pytest.approx([0, 0.5, 0.5])
    (gradient,) = torch.autograd.grad(policy[..., 0].sum(), logits)
    assert (gradient[0][~allowed] == 0).all()


def test_where_nothing_is_allowed_the_policy_is_even_and_not_nan():
    policy = forbid(torch.randn(1, 1, 4), torch.zeros(1, 4, dtype=torch.bool)).softmax(-1)
    assert policy.flatten().tolist() == [0.25] * 4
