"""The optimiser: Adam for many networks at once, and the schedule of its rates."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from etips.learn.training.settings import Settings
from etips.learn.training.state import State
from etips.models.gpu import takes

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8  # Adam's usual


class Schedule(NamedTuple):
    """What changes from step to step, as tensors, so that a captured step can read it.

    Args:
        rates: Learning rate of each network, shape (n, J) or (J,).
        kept: What decay leaves of the weights of each network, of the same shape.
        first: What the running mean is divided by, since it starts at zero, shape (n,) or ().
        second: The same for the running square.
        key: Of the dropout.
    """

    rates: Tensor
    kept: Tensor
    first: Tensor
    second: Tensor
    key: Tensor

    def at(self, number: int) -> "Schedule":
        """That of one step."""
        return Schedule(*(values[number] for values in self))


def epoch_schedule(state: State, settings: Settings, epoch: int, n_batches: int) -> Schedule:
    """The schedule of an epoch's steps; the rate falls along half a cosine, and is 0 once stopped.

    Args:
        state: Of the networks.
        settings: How to train.
        epoch: Which, from 0.
        n_batches: Steps of it.
    """
    like = next(iter(state.parameters.values()))
    step = np.arange(n_batches) + epoch * n_batches
    share = np.minimum(step / max(settings.epochs * n_batches, 1), 1.0)
    running = state.running(settings.patience) * settings.learning_rate
    cosine = torch.from_numpy(0.5 * (1 + np.cos(np.pi * share)))[:, None].to(like.device)
    made = (
        1 - BETA_1 ** (step + 1.0),
        1 - BETA_2 ** (step + 1.0),
        (settings.seed * 1_000_003 + step) % 2**31,
    )
    first, second, key = (torch.from_numpy(values).to(like.device) for values in made)
    rates = (cosine * running).to(like.dtype)
    kept = (1 - cosine * running * settings.weight_decay).to(like.dtype)
    return Schedule(rates, kept, first.to(like.dtype), second.to(like.dtype), key)


def adam(state: State, gradients: Sequence[Tensor], schedule: Schedule, longest: float) -> None:
    """Adam with decoupled weight decay, every network with its own rate, decay and gradient norm.

    Args:
        state: Changed in place.
        gradients: In the order of the parameters.
        schedule: Of this step.
        longest: Gradient that a network may have; a longer one is shortened.
    """
    if _taken(state):
        _move_on_gpu(state, gradients, schedule, longest)
        return
    squares = _added([gradient.flatten(1).square().sum(1) for gradient in gradients])
    shrink = (longest / squares.sqrt().clamp_min(1e-12)).clamp_max(1.0)
    for (name, value), whole in zip(state.parameters.items(), gradients, strict=True):
        shape = (-1, *[1] * (value.dim() - 1))
        rate, gradient = schedule.rates.view(shape), whole * shrink.view(shape)
        first, second = state.first[name], state.second[name]
        first.lerp_(gradient, 1 - BETA_1)
        second.mul_(BETA_2).addcmul_(gradient, gradient, value=1 - BETA_2)
        spread = (second / schedule.second).sqrt_().add_(EPSILON)
        if value.dim() > 2:  # a weight and not a bias
            value.mul_(schedule.kept.view(shape))
        value.sub_((first * (rate / schedule.first)).div_(spread))


def _added(each: Sequence[Tensor]) -> Tensor:
    """Their sum in one order; torch's own depends on how many networks are side by side."""
    lanes = [sum(each[first + 4 :: 4], each[first]) for first in range(min(4, len(each)))]
    return sum(lanes[1:], lanes[0])


def _taken(state: State) -> bool:
    """Whether a kernel of our own takes all that is moved."""
    groups = (state.parameters, state.first, state.second)
    each = [value for group in groups for value in group.values()]
    return all(value.is_contiguous() and takes(value) for value in each)


def _move_on_gpu(
    state: State, gradients: Sequence[Tensor], schedule: Schedule, longest: float
) -> None:
    """The same by a kernel of our own."""
    from etips.models.gpu_kernels import Adam, adam_step  # noqa: PLC0415  # needs Triton

    norms = [torch.linalg.vector_norm(own.flatten(1), dim=1) for own in gradients]
    length = torch.linalg.vector_norm(torch.stack(norms), dim=0)
    shrink = (longest / length.clamp_min(1e-12)).clamp_max(1.0)
    each = torch.stack([shrink, schedule.rates, schedule.kept])
    every, usual = torch.stack([schedule.first, schedule.second]), Adam(BETA_1, BETA_2, EPSILON)
    for (name, value), gradient in zip(state.parameters.items(), gradients, strict=True):
        moments = state.first[name], state.second[name]
        adam_step(value, gradient, *moments, each, every, usual, decays=value.dim() > 2)
