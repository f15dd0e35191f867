"""Kernels of our own are used where Triton is there and compiles; elsewhere it is said once."""

import logging
import types

import pytest
import torch

from etips.models.kernels import compiling


@pytest.fixture(autouse=True)
def _nothing_is_known():
    compiling.can_compile.cache_clear()
    yield
    compiling.can_compile.cache_clear()


def tried_out(monkeypatch, work):
    monkeypatch.setattr(compiling, "find_spec", lambda _: True)
    monkeypatch.setattr(compiling, "import_module", lambda _: types.SimpleNamespace(try_out=work))


def test_without_triton_nothing_is_compiled_and_nobody_is_told(monkeypatch, caplog):
    monkeypatch.setattr(compiling, "find_spec", lambda _: None)
    assert not compiling.can_compile()
    assert not caplog.records


def test_where_the_trial_succeeds_kernels_are_used(monkeypatch):
    tried_out(monkeypatch, lambda: None)
    assert compiling.can_compile()


def test_where_nothing_can_be_compiled_a_warning_comes_once(monkeypatch, caplog):
    def refuse():
        raise RuntimeError("no compiler")

    tried_out(monkeypatch, refuse)
    with caplog.at_level(logging.WARNING):
        assert not compiling.can_compile()
        assert not compiling.can_compile()
    assert len(caplog.records) == 1
    assert "no compiler" in caplog.text


class Values:
    """A tensor as far as the question goes."""

    def __init__(self, dtype=torch.float32, device="cuda:0"):
        self.dtype, self.device = dtype, torch.device(device)
        self.is_cuda = self.device.type == "cuda"


@pytest.mark.parametrize(
    ("values", "taken"),
    [
        (Values(), True),
        (Values(dtype=torch.float64), False),
        (Values(device="cuda:1"), False),  # not the GPU in use
        (Values(device="cpu"), False),
    ],
)
def test_kernels_take_float32_on_the_gpu_in_use(values, taken, monkeypatch):
    tried_out(monkeypatch, lambda: None)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    assert compiling.takes(values) is taken


@pytest.mark.gpu
def test_on_a_gpu_with_triton_kernels_are_compiled():
    pytest.importorskip("triton")
    assert compiling.can_compile()
