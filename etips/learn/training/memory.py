"""How many networks train side by side: as many as memory holds; the others follow them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from etips.errors import ResourceError
from etips.learn.training.settings import Settings
from etips.machine import free_memory
from etips.models.answers import batch_size_on
from etips.models.batches import StepTensors
from etips.models.gpu import free_on_gpu
from etips.models.network import Network

SHARE = 0.7
"""Of the free memory that training may take: estimates err, and others use the machine too."""

_NUMBER = 4  # bytes of a float32
_COPIES = 8  # of the parameters: two moments, the best, gradients, what the optimiser makes of them
_OUTPUTS = 8  # arrays as large as the outputs that objectives make
_STATES = 3  # arrays as large as the states that looking at held-out stays takes
_BACKWARD = {"cpu": 2.0, "cuda": 4.0}  # memory at its highest over what a CPU's pass keeps
_LACKS = ("can't allocate memory", "not enough memory")  # what torch says where it has no type


def estimate(network: Network, steps: StepTensors, settings: Settings) -> int:
    """Bytes that one network of a bundle takes in training, by trial on one stay and on two.

    What a pass keeps for the way back is counted, so that it holds for any encoder.
    """
    longest = _longest(steps)
    one, two = (_kept(network, longest, n_stays) for n_stays in (1, 2))
    parameters = sum(value.nbytes for value in network.start([0]).values())
    outputs = _NUMBER * longest * _OUTPUTS * network.n_outputs
    learning = settings.batch_size * (_BACKWARD[steps.device.type] * (two - one) + outputs)
    asking = min(batch_size_on(steps.device), steps.n_stays) * _asking(network, steps)
    return int(_COPIES * parameters + max(learning, asking))


def stays_at_once(network: Network, steps: StepTensors, n_networks: int) -> int:
    """How many stays may be asked at once of so many networks that do not learn.

    Args:
        network: Their shape.
        steps: The stays.
        n_networks: How many are asked together.
    """
    each = n_networks * _asking(network, steps)
    fit = int(room(steps.device) // each)
    return max(min(fit, batch_size_on(steps.device)), 1)


def askers(network: Network, steps: StepTensors, n_networks: int, n_stays: int) -> int:
    """How many may ask networks at the same time.

    Args:
        network: Their shape.
        steps: The stays.
        n_networks: How many each of them asks.
        n_stays: About how many stays at once.
    """
    each = n_stays * n_networks * _asking(network, steps)
    return max(int(room(steps.device) // each), 1)


def room(device: torch.device) -> float:
    """Bytes that a training on the device may take."""
    return SHARE * free(device)


def free(device: torch.device) -> int:
    """Bytes on the device that this process may still take."""
    if device.type == "cuda":
        return free_on_gpu(device)
    left = free_memory()
    return _half_of_all() if left is None else left


def parts_of(n_networks: int, each: int, available: float) -> list[slice]:
    """Networks in parts of about one size, as few as fit; a part has at least one network.

    Args:
        n_networks: All of them.
        each: Bytes of one.
        available: Bytes for those that train together.
    """
    fit = max(int(available // max(each, 1)), 1)
    n_parts = -(-n_networks // fit)
    return cut(n_networks, -(-n_networks // n_parts))


def cut(n_networks: int, size: int) -> list[slice]:
    """Networks in parts of a size; the last may be smaller."""
    return [slice(at, min(at + size, n_networks)) for at in range(0, n_networks, size)]


@contextmanager
def refusing_lack() -> Iterator[None]:
    """Turn what torch says when memory runs out into a refusal."""
    fix = "Lower batch_size or hidden."
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise ResourceError("memory of the GPU", "ran out in training", fix=fix) from error
    except RuntimeError as error:
        if not any(words in str(error) for words in _LACKS):
            raise
        raise ResourceError("memory", "ran out in training", fix=fix) from error


def _asking(network: Network, steps: StepTensors) -> int:
    """Bytes that one network takes for one stay where it does not learn."""
    states = _STATES * network.encoder.size(network.n_features)
    return _NUMBER * _longest(steps) * (states + _OUTPUTS * network.n_outputs)


def _longest(steps: StepTensors) -> int:
    return max(int(steps.reach.max()), 1)


def _kept(network: Network, n_steps: int, n_stays: int) -> int:
    """Bytes that a pass over blank stays keeps for the way back, each memory counted once."""
    memories: dict[int, int] = {}

    def keep(value: Tensor) -> Tensor:
        memory = value.untyped_storage()
        memories[memory.data_ptr()] = memory.nbytes()
        return value

    parameters = {name: value.requires_grad_() for name, value in network.start([0]).items()}
    inputs = torch.zeros(n_steps, n_stays, network.n_features)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda value: value):
        outputs = network.outputs(parameters, inputs, torch.zeros(n_stays, network.n_static))
    del outputs  # until now it held what was kept, so that no memory was counted as another
    return sum(memories.values())


def _half_of_all() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
