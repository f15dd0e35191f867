"""Products that do not tell how many networks stand side by side."""

import pytest
import torch

from etips.models.kernels.product import LINE, product

TEAMS = (slice(0, 1), slice(3, 4), slice(1, 3), slice(0, 5, 2))


def drawn(*shape, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape))).to(dtype)


def with_gradients(left, right, pull):
    own = [value.clone().requires_grad_() for value in (left, right)]
    made = product(*own)
    return [made.detach(), *torch.autograd.grad(made, own, pull)]


@pytest.mark.parametrize("n_shared", [0, 1])
def test_it_is_the_matrix_product_with_its_gradients(n_shared):
    left = drawn(*((7, 3) if n_shared else (5, 7, 3)), dtype=torch.float64).requires_grad_()
    right = drawn(5, 3, 4, dtype=torch.float64).requires_grad_()
    torch.testing.assert_close(product(left, right), left @ right)
    assert torch.autograd.gradcheck(product, (left, right))


def test_a_network_whose_states_all_share_is_met_by_every_one():
    assert product(drawn(1, 7, 3), drawn(5, 3, 4)).shape == (5, 7, 4)


@pytest.mark.parametrize(("n", "width", "m"), [(1231, 64, 10), (4681, 64, 10), (1231, 3, 25)])
def test_alone_and_beside_others_it_is_the_same_to_the_bit(n, width, m):
    left, right, pull = drawn(5, n, width), drawn(5, width, m), drawn(5, n, m)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    whole = with_gradients(left, right, pull)
    for these in TEAMS:
        some = with_gradients(left[these], right[these], pull[these])
        assert all(torch.equal(one, all_[these]) for one, all_ in zip(some, whole, strict=True))
    torch.set_num_threads(before)


def test_every_networks_product_begins_at_a_cache_line():
    made = product(drawn(5, 7, 3), drawn(5, 3, 4))
    assert not made.stride(0) % LINE
