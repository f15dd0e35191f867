"""Whether kernels of our own can be compiled on this machine's GPU."""

import logging
from functools import cache
from importlib import import_module
from importlib.util import find_spec

import torch
from torch import Tensor

_LOG = logging.getLogger(__name__)


def takes(values: Tensor) -> bool:
    """Whether kernels of our own take these: float32 on the GPU in use, where they compile."""
    if not values.is_cuda or values.dtype != torch.float32:
        return False
    return values.device.index == torch.cuda.current_device() and can_compile()


@cache
def can_compile() -> bool:
    """Whether Triton is installed and compiles: it needs a C compiler, which may be missing.

    Asked where there is a GPU alone.
    """
    if find_spec("triton") is None:
        return False
    try:
        import_module("etips.models.kernels.adam_kernel").try_out()
    except Exception as error:  # noqa: BLE001  # whatever a compiler may say
        _LOG.warning("Kernels cannot be compiled, training will run slower: %s", error)
        return False
    return True
