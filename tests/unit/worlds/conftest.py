"""What the tests of several worlds share."""

import contextlib

import numpy as np
import pytest
import torch


@contextlib.contextmanager
def _generators_left_alone():
    before = np.random.get_state()[1:3]  # noqa: NPY002
    torch_before = torch.get_rng_state()
    yield
    after = np.random.get_state()[1:3]  # noqa: NPY002
    assert (after[0] == before[0]).all()
    assert after[1] == before[1]
    assert torch.equal(torch.get_rng_state(), torch_before)


@pytest.fixture
def generators_left_alone():
    """A context that fails unless the global generators end as they began."""
    return _generators_left_alone
