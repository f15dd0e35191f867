"""Whether what a network learns is rounded alike, alone or beside others.

Where it is, networks may be divided among cores as there are cores, and what they learn does not
tell how many there were. It rests on three things. A product of one network is the same to the bit
whatever stands beside it, as long as its matrices begin at a cache line. No sum runs over networks.
And no array of a network ends within what a processor takes at once: torch rounds the sigmoids that
are left over at the end otherwise. So widths must be whole multiples, and since nobody promises the
first, it is tried out.
"""

from functools import lru_cache

import torch
from torch import Tensor

from etips.learn.training.crew import one_thread
from etips.models.encoders.gru import GRU
from etips.models.encoders.last_step import LastStep
from etips.models.encoders.lstm import LSTM
from etips.models.network import Network

TAKEN = 32
"""Numbers that a processor takes at once, at most."""

_SEEDS, _STEPS, _STAYS = (0, 1, 2, 3, 4), 2, 256  # what is tried out: networks, and what they read
_TEAMS = (slice(0, 1), slice(1, 2), slice(4, 5), slice(1, 3), slice(2, 5), slice(0, 5, 2))


@lru_cache(maxsize=64)
def is_rounded_alike(network: Network, n_stays: int, kind: torch.dtype) -> bool:
    """Whether networks of a shape give the same bits alone, in any team, on this machine's CPU.

    Args:
        network: The shape.
        n_stays: Of a batch.
        kind: Of its numbers.
    """
    if not _is_whole(network):
        return False
    own = {name: value.to(kind) for name, value in network.start(_SEEDS).items()}
    most = min(n_stays, _STAYS)
    with one_thread():  # as networks learn
        return all(_is_alike(network, own, size) for size in {most, max(most * 4 // 5 - 1, 1)})


def _is_whole(network: Network) -> bool:
    """Whether the arrays of a network are whole multiples of what a processor takes at once."""
    encoder = network.encoder
    if network.additive or network.n_outputs < 2 or not isinstance(encoder, GRU | LSTM | LastStep):
        return False
    embed = 0 if isinstance(encoder, LastStep) else encoder.embed
    return encoder.hidden % TAKEN == embed % TAKEN == 0


def _is_alike(network: Network, parameters: dict[str, Tensor], n_stays: int) -> bool:
    """Try it out: outputs and gradients of some teams beside those of all."""
    like = parameters["head.weight"]
    draw = torch.Generator().manual_seed(0)
    shape = (_STEPS, n_stays, network.n_features)
    inputs = torch.randn(shape, generator=draw).to(like.dtype)
    static = torch.randn(n_stays, network.n_static, generator=draw).to(like.dtype)
    slots = torch.randperm(_STEPS * n_stays, generator=draw)[: max(_STEPS * n_stays - 3, 1)]
    pull = torch.randn(len(slots), network.n_outputs, generator=draw).to(like.dtype)

    def found(these: slice) -> list[Tensor]:
        own = {name: value[these].requires_grad_() for name, value in parameters.items()}
        outputs = network.outputs(own, inputs, static, slots=slots.sort().values)
        pulled = (
            outputs * pull
        ).sum()  # torch imports SymPy for gradients of anything but a number
        return [outputs, *torch.autograd.grad(pulled, list(own.values()))]

    whole = found(slice(None))
    return all(
        torch.equal(part, every[these])
        for these in _TEAMS
        for part, every in zip(found(these), whole, strict=True)
    )
