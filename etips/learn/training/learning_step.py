"""One step of learning: all networks of a bundle on a batch of stays, on a CPU or a GPU."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from etips.data.decisions import Ints
from etips.learn.training.objectives import Objective, combine, part_of
from etips.learn.training.optimiser import Schedule, adam
from etips.learn.training.settings import Settings
from etips.learn.training.state import State
from etips.models.answers import forward
from etips.models.batches import Batch, StepTensors
from etips.models.gpu import Feed
from etips.models.network import Network

_LOG = logging.getLogger(__name__)

INPUTS = 0x51ED27
"""Added to the key of a learning step, it keeps the inputs' mask apart from the states'."""

MOST_SHAPES = 12
"""Lengths of a batch that are captured on a GPU; longer data are rounded up to fewer."""

Learn = Callable[[Ints, Schedule], None]
"""Does one step of every network, on a batch of these stays."""


class Masks(NamedTuple):
    """What is hidden while learning, None for nothing.

    Args:
        state: Of the states where a decision is asked, shape (n, hidden).
        inputs: Of the features, shape (T * B, n_features).
    """

    state: Tensor | None = None
    inputs: Tensor | None = None


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


def hide(rows: Tensor, width: int, key: Tensor, share: float) -> Tensor | None:
    """Zeros and scaled ones, shape (n_rows, width), a hash of learning step, row and unit.

    It is the same for all networks, so that none depends on its neighbours; and it depends on
    nothing else, so that a batch may be laid out in any way.
    """
    if share == 0:
        return None
    unit = mix(torch.arange(width, dtype=torch.int32, device=key.device))
    row = mix(rows ^ mix(key))
    hidden = (mix(row[:, None] ^ unit) & 0xFFFFFF) < int(share * 2**24)
    return hidden.logical_not().to(torch.float32).div_(1 - share)


def mix(values: Tensor) -> Tensor:
    """Scatter 32-bit whole numbers, by the finaliser of MurmurHash3."""
    values = values.bitwise_xor(values >> 16).mul_(-2048144789)
    values = values.bitwise_xor_(values >> 13).mul_(-1028477387)
    return values.bitwise_xor_(values >> 16)


class Replay:
    """Work on a GPU that is captured once and replayed, so that launching it costs next to nothing.

    A step of a bundle is a thousand small kernels; asking for them one by one takes longer than
    doing them. What is captured reads and writes tensors that stay where they are. Work that cannot
    be captured is done as it is, with a warning.

    Args:
        work: Does everything for one shape; reads and writes only tensors that stay in place.
        changed: The tensors it changes, all of them: warming up must leave no trace.
    """

    def __init__(self, work: Callable[[int], None], changed: Sequence[Tensor]) -> None:
        self._work = work
        self._changed = list(changed)
        self._graphs: dict[int, torch.cuda.CUDAGraph] = {}
        self._first: torch.cuda.CUDAGraph | None = None
        self._capturing = True

    def __call__(self, shape: int) -> None:
        """Do the work for this shape."""
        if self._capturing and shape not in self._graphs:
            self._capture(shape)
        if shape in self._graphs:
            self._graphs[shape].replay()
        else:
            self._work(shape)

    def _capture(self, shape: int) -> None:
        before = [value.clone() for value in self._changed]
        try:
            self._graphs[shape] = self._graph(shape)
        except RuntimeError as error:
            self._capturing = False
            _LOG.warning("The training step cannot be captured, it will run slower: %s", error)
        torch.cuda.synchronize()
        for value, old in zip(self._changed, before, strict=True):
            value.copy_(old)

    def _graph(self, shape: int) -> torch.cuda.CUDAGraph:
        side = _capture_stream()
        if self._first is None:  # libraries choose their kernels before the capture
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                self._work(shape)
            torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        # One pool of memory for all shapes, since only one of them runs at a time.
        pool = None if self._first is None else self._first.pool()
        with torch.cuda.graph(graph, pool=pool, stream=side, capture_error_mode="thread_local"):
            self._work(shape)
        self._first = self._first or graph
        return graph


@cache
def _capture_stream() -> torch.cuda.Stream:
    """Where everything is captured; work that others put on it would be captured too."""
    return torch.cuda.Stream()  # type: ignore[no-untyped-call]
