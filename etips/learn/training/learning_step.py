"""One step of learning: all networks of a bundle on a batch of stays, on a CPU or a GPU."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from etips.data.decisions import Ints
from etips.learn.training.captured import Replay
from etips.learn.training.dropout import INPUTS, Masks, hide, mix
from etips.learn.training.objectives import Objective, combine, part_of
from etips.learn.training.optimiser import Schedule, adam
from etips.learn.training.settings import Settings
from etips.learn.training.state import State
from etips.models.answers import forward
from etips.models.batches import Batch, StepTensors
from etips.models.gpu import Feed
from etips.models.network import Network

_LOG = logging.getLogger(__name__)

MOST_SHAPES = 12
"""Lengths of a batch that are captured on a GPU; longer data are rounded up to fewer."""

Learn = Callable[[Ints, Schedule], None]
"""Does one step of every network, on a batch of these stays."""


@dataclass(frozen=True, eq=False)
class Task:
    """What all steps of a training share.

    Args:
        network: Shape of the networks.
        steps: The stays.
        objective: What to minimise.
        weight: How much each stay counts for each network, shape (J, n_stays).
        settings: How to train.
        bfloat16: Whether products are rounded to bfloat16.
    """

    network: Network
    steps: StepTensors
    objective: Objective
    weight: Tensor
    settings: Settings
    bfloat16: bool = False

    def of(self, these: slice) -> "Task":
        """That of some networks."""
        own = part_of(self.objective, these)
        return replace(self, objective=own, weight=self.weight[these])


def learning_steps(task: Task, state: State, tally: Tensor) -> Learn:
    """What does the steps of a training, in the way that suits its device.

    Args:
        task: What they share.
        state: Changed in place.
        tally: The risk of every batch is added to it, shape (J,).
    """
    return (_captured if task.steps.device.type == "cuda" else _plain)(task, state, tally)


def epoch_parts(task: Task, epoch: int) -> list[Ints]:
    """The stays of every batch of an epoch, in order.

    They depend on its number alone, so that a resumed run, or another process, finds them again.
    """
    settings, steps = task.settings, task.steps
    order = np.random.default_rng([settings.seed, epoch])
    return steps.parts(np.arange(steps.n_stays), settings.batch_size, order)


def _plain(task: Task, state: State, tally: Tensor) -> Learn:
    """Learning steps on a CPU, on those stays of a batch that count for any of the networks."""
    counts = (task.weight > 0).any(0).numpy()

    def learn(part: Ints, schedule: Schedule) -> None:
        stays = part[counts[part]]
        # Where no stay counts, Adam still moves on; that takes any stay.
        batch = task.steps.batch(stays if len(stays) else part[:1])
        learn_batch(task, state, tally, batch, schedule)

    return learn


def _captured(task: Task, state: State, tally: Tensor) -> Learn:
    """Learning steps on a GPU: those of one length are captured once and replayed after."""
    steps, size = task.steps, task.settings.batch_size
    stays = torch.zeros(size, dtype=torch.long, device=steps.device)
    count = torch.zeros((), dtype=torch.long, device=steps.device)
    grain = -(-int(steps.reach.max()) // MOST_SHAPES)
    held: list[Schedule] = []
    longest = (MOST_SHAPES * grain, size, steps.n_features)
    feed = Feed(longest, steps.device) if steps.on_host else None

    def work(n_steps: int) -> None:
        batch = steps.padded_batch(stays, count, n_steps)
        if feed is not None:
            batch = replace(batch, features=feed.features(n_steps))
        learn_batch(task, state, tally, batch, held[0])

    moved = (state.parameters, state.first, state.second)
    changed = [tally, *(value for group in moved for value in group.values())]
    replay = Replay(work, changed)

    def learn(part: Ints, schedule: Schedule) -> None:
        if not held:
            held.append(Schedule(*(value.clone() for value in schedule)))
        for place, value in zip(held[0], schedule, strict=True):
            place.copy_(value)
        filled = np.append(part, np.full(size - len(part), part[0]))
        stays.copy_(torch.from_numpy(filled).pin_memory(), non_blocking=True)
        count.fill_(len(part))
        n_steps = -(-int(steps.reach[part].max()) // grain) * grain
        if feed is not None:
            feed.load(steps.padded_features(filled, n_steps))
        replay(n_steps)

    return learn


def use_bfloat16(settings: Settings, device: torch.device) -> bool:
    """Whether to round products to bfloat16: where it was asked for and is of use."""
    if settings.precision == "float32":
        return False
    if device.type != "cuda":
        _LOG.warning("bfloat16 is for a GPU: on the CPU training stays in float32.")
        return False
    return True


def learn_batch(task: Task, state: State, tally: Tensor, batch: Batch, schedule: Schedule) -> None:
    """One step of every network on one batch."""
    # Not `detach`: it would take another fold's step, in another thread, for a change of these.
    own = {name: value.data.requires_grad_() for name, value in state.parameters.items()}
    masks = dropout_masks(task, batch, schedule.key, own["head.weight"])
    # Without the cache of casts, which a captured step would take for its own.
    kind = schedule.key.device.type
    with torch.autocast(kind, torch.bfloat16, enabled=task.bfloat16, cache_enabled=False):
        outputs = forward(
            task.network, own, batch, task.steps, keep_inputs=masks.inputs, keep_state=masks.state
        )
    values = task.objective(outputs, batch.seen)
    shares = task.weight[:, batch.owner].to(values.dtype)
    if batch.real is not None:
        shares = shares * batch.real
    means = (values * shares).sum(-1) / shares.sum(1).clamp_min(1e-12)
    risk = combine(task.objective, means)
    gradients = torch.autograd.grad(risk.sum(), list(own.values()))
    with torch.no_grad():
        tally.add_(risk)
        adam(state, gradients, schedule, task.settings.clip_norm)


def dropout_masks(task: Task, batch: Batch, key: Tensor, head: Tensor) -> Masks:
    """What is hidden at this learning step."""
    settings, rows = task.settings, batch.rows.flatten().to(torch.int32)
    width = head.shape[1] - task.network.n_static
    asked = rows if batch.slots is None else rows[batch.slots]
    state = hide(asked, width, key.to(torch.int32), settings.dropout)
    other = mix(key.to(torch.int32) + INPUTS)
    inputs = hide(rows, task.network.n_features, other, settings.input_dropout)
    return Masks(*(None if m is None else m.to(head.dtype) for m in (state, inputs)))
