"""Networks asked about stays."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from etips.learn.training.dropout import Masks
from etips.models.batches import Batch, StepTensors
from etips.models.bundle import Bundle
from etips.models.network import Network

LOOK = 1024
"""Stays that are asked at once where nothing is learnt."""

_LOOK_ON_GPU = 4096  # where a pass takes as long as its launches do


def stays_a_look(device: torch.device) -> int:
    """Stays that are asked at once on a device."""
    return _LOOK_ON_GPU if device.type == "cuda" else LOOK


def outputs_of(bundle: Bundle, steps: StepTensors, *, batch_size: int | None = None) -> Tensor:
    """Outputs of every network at every decision, shape (J, n_decisions, K), in decision order."""
    rows = torch.from_numpy(np.flatnonzero(steps.answers)).to(steps.device)
    place = torch.empty(len(steps.answers), dtype=torch.long, device=steps.device)
    place[rows] = torch.arange(len(rows), device=steps.device)
    found = torch.empty(
        (bundle.n_members, len(rows), bundle.network.n_outputs),
        dtype=bundle.parameters["head.bias"].dtype,
        device=steps.device,
    )
    size = batch_size or stays_a_look(steps.device)
    with torch.no_grad():
        for batch in steps.batches(np.arange(steps.n_stays), size):
            found[:, place[batch.seen]] = run_batch(bundle, batch, steps)
    return found


def run_batch(bundle: Bundle, batch: Batch, steps: StepTensors) -> Tensor:
    """Outputs at the decisions of one batch, shape (J, n, K)."""
    return forward(bundle.network, bundle.parameters, batch, steps)


def forward(
    network: Network,
    parameters: Mapping[str, Tensor],
    batch: Batch,
    steps: StepTensors,
    masks: Masks | None = None,
) -> Tensor:
    """Outputs at the decisions of one batch, shape (J, n, K).

    Args:
        network: Shape of the networks.
        parameters: Of J networks.
        batch: Stays.
        steps: What they are.
        masks: What is hidden from the networks; nothing if left out.
    """
    masks = masks or Masks()
    inputs = steps.inputs(batch.rows)
    if masks.inputs is not None:
        inputs = inputs * masks.inputs.view_as(inputs)
    static = steps.static[batch.stay]
    return network.outputs(parameters, inputs, static, slots=batch.slots, keep=masks.state)
