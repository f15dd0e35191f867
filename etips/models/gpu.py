"""What a GPU needs besides: features that do not fit its memory, and whether kernels compile.

While the GPU does one step the host gathers the features of the next into memory that the GPU may
read by itself, and a stream of its own carries them over. A captured step reads one buffer that
stays where it is, so the last hop is a copy within the GPU.
"""

import logging
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Literal

import torch
from torch import Tensor

_LOG = logging.getLogger(__name__)

Place = Literal["auto", "device", "host"]
"""Where features are: on the device as long as they take no more than `SHARE` of what is free, or
where somebody wants them."""

SHARE = 0.5


def stay_on_host(n_bytes: int, device: torch.device, place: Place = "auto") -> bool:
    """Whether features stay in the host's memory.

    Args:
        n_bytes: That they take.
        device: That reads them.
        place: Where somebody wants them.
    """
    if place != "auto" or device.type != "cuda":
        return place == "host"
    return n_bytes > SHARE * free_on_gpu(device)


def free_on_gpu(device: torch.device) -> int:
    """Bytes of a GPU that this process may still take."""
    unused, _ = torch.cuda.mem_get_info(device)
    cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(unused + cached)


class Feed:
    """The features of one batch after another, in a buffer that stays where it is.

    Args:
        shape: Of the largest batch: steps, stays, features.
        device: That reads them.
    """

    def __init__(self, shape: tuple[int, int, int], device: torch.device) -> None:
        self._buffer = torch.zeros(shape, device=device)
        kind = _GpuLane if device.type == "cuda" else _Lane
        self._lanes = [kind(self._buffer) for _ in range(2)]  # one is filled while one is read

    def load(self, features: Tensor) -> None:
        """Hand over the features of the next batch, shape (steps, stays, features), on the host.

        It returns before the GPU has them; what is asked of the GPU afterwards waits for them.
        """
        self._lanes.reverse()
        self._lanes[0].carry(features, self._buffer[: len(features)])

    def features(self, n_steps: int) -> Tensor:
        """Where those of a batch of so many steps are, once they are loaded."""
        return self._buffer[:n_steps]


class _Lane:
    """The way of a batch where host and device are one.

    Args:
        like: A buffer of the same shape.
    """

    def __init__(self, like: Tensor) -> None:
        self._like = like

    def carry(self, features: Tensor, target: Tensor) -> None:
        """Copy features from the host to `target`."""
        target.copy_(features)


class _GpuLane(_Lane):
    """The way of a batch to a GPU, by a stream beside the one that computes."""

    def __init__(self, like: Tensor) -> None:
        super().__init__(like)
        self._staged = torch.empty(like.shape, dtype=like.dtype, pin_memory=True)
        self._arrived = torch.empty_like(like)
        # Of the higher priority: captures are on streams of the usual one, and a copy that came
        # between would be captured with them.
        self._stream = torch.cuda.Stream(like.device, priority=-1)  # type: ignore[no-untyped-call]
        self._sent = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self._taken = torch.cuda.Event()  # type: ignore[no-untyped-call]

    def carry(self, features: Tensor, target: Tensor) -> None:
        """Copy features from the host to `target`, without waiting for the GPU's present work."""
        n_steps, computing = len(features), torch.cuda.current_stream(self._like.device)
        self._sent.synchronize()  # two batches ago; the staged one may be overwritten now
        self._staged[:n_steps].copy_(features)
        with torch.cuda.stream(self._stream):
            self._stream.wait_event(self._taken)
            self._arrived[:n_steps].copy_(self._staged[:n_steps], non_blocking=True)
            self._sent.record(self._stream)
        computing.wait_event(self._sent)
        target.copy_(self._arrived[:n_steps])
        self._taken.record(computing)


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
        import_module("etips.models.gpu_kernels").try_out()
    except Exception as error:  # noqa: BLE001  # whatever a compiler may say
        _LOG.warning("Kernels cannot be compiled, training will run slower: %s", error)
        return False
    return True
