"""Networks asked about decisions."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from etips.data.decisions import Ints
from etips.models.batches import Batch, StepTensors
from etips.models.bundle import Bundle
from etips.models.network import Network

BATCH_SIZE = 1024
"""Stays that are asked at once where nothing is learned."""

_BATCH_SIZE_ON_GPU = 4096  # where a pass takes as long as its launches do

Ask = Callable[[Batch, int], tuple[Tensor, ...]]
"""What to keep of a batch of a group of stays; each tensor has an axis of the batch's decisions."""


def batch_size_on(device: torch.device) -> int:
    """Stays that are asked at once on a device."""
    return _BATCH_SIZE_ON_GPU if device.type == "cuda" else BATCH_SIZE


def answer_decisions(
    steps: StepTensors,
    ask: Ask,
    *,
    groups: Sequence[Ints] | None = None,
    batch_size: int | None = None,
    axis: int = 0,
    answers: tuple[Tensor, ...] = (),
) -> tuple[Tensor, ...]:
    """What networks say of every decision, in decision order.

    Args:
        steps: The stays.
        ask: Asks the networks about a batch, given the number of its group, and says what to keep:
            no more than that is held in memory.
        groups: Stays that are asked together, such as those of a fold; all of them if left out.
        batch_size: Stays at once; what suits the device if left out.
        axis: Where the tensors that `ask` returns have the decisions.
        answers: Where to write, in place; made here if left out.
    """
    size = batch_size or batch_size_on(steps.device)
    with torch.no_grad():
        for number, stays in enumerate(groups or [np.arange(steps.n_stays)]):
            for batch in steps.batches(stays, size):
                said = ask(batch, number)
                answers = answers or tuple(blank(value, axis, steps.n_decisions) for value in said)
                for whole, part in zip(answers, said, strict=True):
                    whole.index_copy_(axis, steps.decision_of_row[batch.seen], part)
    return answers


def outputs_at(bundle: Bundle, batch: Batch, steps: StepTensors) -> Tensor:
    """Outputs of every network at the decisions of a batch, shape (J, n, K)."""
    return forward(bundle.network, bundle.parameters, batch, steps)


def forward(
    network: Network,
    parameters: Mapping[str, Tensor],
    batch: Batch,
    steps: StepTensors,
    *,
    keep_inputs: Tensor | None = None,
    keep_state: Tensor | None = None,
) -> Tensor:
    """Outputs at the decisions of one batch, shape (J, n, K).

    Args:
        network: Shape of the networks.
        parameters: Of J networks.
        batch: Stays.
        steps: What they are.
        keep_inputs: Dropout mask of the features, already scaled, shape (T * B, n_features).
        keep_state: The same of the states where a decision is asked, shape (n, hidden).
    """
    inputs = steps.inputs(batch.rows) if batch.features is None else batch.features
    if keep_inputs is not None:
        inputs = inputs * keep_inputs.view_as(inputs)
    static = steps.static[batch.stay]
    return network.outputs(parameters, inputs, static, slots=batch.slots, keep=keep_state)


def blank(like: Tensor, axis: int, n_decisions: int) -> Tensor:
    """Zeros in the shape of an answer of all decisions, as that of some of them has it."""
    return like.new_zeros(*like.shape[:axis], n_decisions, *like.shape[axis + 1 :])
