"""The one training loop: a bundle of networks, one pass a stay, resumable at any batch."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from etips.data.decisions import Ints
from etips.learn.training.captured import Replay
from etips.learn.training.dropout import INPUTS, Masks, hide, mix
from etips.learn.training.objectives import Objective, part_of
from etips.learn.training.optimiser import Pace, adam, paces
from etips.learn.training.settings import Settings
from etips.learn.training.sharing import require_wanted
from etips.learn.training.state import Moving, State
from etips.learn.training.teams import Team, learning, teams_of
from etips.learn.training.validation import held_out_teams, look
from etips.models.answers import forward
from etips.models.batches import Batch, StepTensors
from etips.models.bundle import Bundle
from etips.models.network import Network

_LOG = logging.getLogger(__name__)
MOST_SHAPES = 12
"""Lengths of a batch that are captured on a GPU; longer data are rounded up to fewer."""

Report = Callable[[Mapping[str, float | str]], None]
"""Told after every epoch how it stands: `epoch` of `epochs`, mean `loss` of the networks that still
learn, best `held_out` risk, `seconds_left`; for policies also the mean held-out `matching_factor`;
and where a learner is fitted, the `stage`."""


def train(
    bundle: Bundle,
    steps: StepTensors,
    objective: Objective,
    *,
    weight: Tensor,
    held_out: Tensor,
    settings: Settings,
    learning_rates: Tensor | None = None,
    weight_decays: Tensor | None = None,
    report: Report | None = None,
    state: State | None = None,
    keep: Callable[[State], None] | None = None,
    halt: threading.Event | None = None,
) -> tuple[Bundle, State]:
    """Minimise `objective` for every network of the bundle; return each at its held-out best.

    The batches are the same for all networks, of all stays that hold a decision; what a network
    learns from is its own row of `weight`. So a network in a bundle becomes what it would have
    become alone, but for rounding.

    Args:
        bundle: Where to start.
        steps: The stays.
        objective: What to minimise.
        weight: How much each stay counts for each network in training, shape (J, n_stays).
        held_out: The same for early stopping, shape (J, n_stays); all zero trains to the end.
        settings: How.
        learning_rates: One a network, shape (J,); that of the settings if left out.
        weight_decays: The same.
        report: Told after every epoch.
        state: Where an interrupted run stood.
        keep: Called after every batch with the state, to save it now and then.
        halt: Set from another thread, it ends the training with an `UnwantedError`.
    """
    state = state or State.start(bundle)
    own = {"learning_rates": learning_rates, "weight_decays": weight_decays}
    lesser = _is_lesser(settings, bundle.device)
    task = _Task(bundle.network, steps, objective, weight, settings, lesser)
    learn = (_captured if bundle.device.type == "cuda" else _in_teams)(task, state.moving)
    stays, teams = np.arange(steps.n_stays), held_out_teams(bundle.network, steps, held_out)
    started, begun_at = time.perf_counter(), state.epoch
    while state.epoch < settings.epochs and not _all_stopped(state, settings):
        parts = steps.parts(stays, settings.batch_size, _order(settings, state.epoch))
        pace = paces(state, settings, len(parts), **own)
        for part in parts[state.batch :]:
            require_wanted(halt)
            learn(part, pace.at(state.batch))
            state.batch, state.step = state.batch + 1, state.step + 1
            if keep is not None:
                keep(state)
        loss = _mean_loss(state, settings, len(parts))
        told = report is not None
        factor = look(bundle, state, steps, objective, held_out, settings, teams=teams, weigh=told)
        state.epoch, state.batch = state.epoch + 1, 0
        state.tally.zero_()
        if report is not None:
            took = (time.perf_counter() - started) / (state.epoch - begun_at)
            left = took * (settings.epochs - state.epoch)
            standing = {"epoch": state.epoch, "epochs": settings.epochs, "loss": loss}
            standing["held_out"] = float(state.best_risk.min())
            report({**standing, **factor, "seconds_left": left})
        if keep is not None:
            keep(state)
    return Bundle(bundle.network, state.best), state


@dataclass(frozen=True, eq=False)
class _Task:
    """What all steps of a run share; `lesser`: whether products are in bfloat16."""

    network: Network
    steps: StepTensors
    objective: Objective
    weight: Tensor
    settings: Settings
    lesser: bool = False

    def of(self, these: slice) -> "_Task":
        """That of some networks."""
        own = part_of(self.objective, these)
        return replace(self, objective=own, weight=self.weight[these])


Learn = Callable[[Ints, Pace], None]
"""Does one step of every network, on a batch of these stays."""


def _in_teams(task: _Task, moving: Moving) -> Learn:
    """Learning steps on a CPU: each team on those stays of a batch that count for it."""
    size, width = task.settings.batch_size, task.network.encoder.size(task.network.n_features)
    teams = teams_of(task.weight, size=size, width=width)
    each: list[tuple[Team, _Task, Moving]] = []
    known: list[bool] = []  # which networks still learn; the same for all steps of an epoch

    def learn(part: Ints, pace: Pace) -> None:
        running = pace.rates > 0  # 0 once a network has stopped
        if (now := running.tolist()) != known:
            known[:] = now
            left = [learning(team, running.numpy(), size=size, width=width) for team in teams]
            each[:] = [(team, task.of(team.these), moving.of(team.these)) for team in chain(*left)]
        for team, own, its in each:
            stays = part[team.counts[part]]
            # Where no stay counts, Adam still moves on; that takes any stay.
            batch = task.steps.batch(stays if len(stays) else part[:1])
            _step(own, its, batch, pace.of(team.these))

    return learn


def _captured(task: _Task, moving: Moving) -> Learn:
    """Learning steps on a GPU: those of one length are captured once and replayed after."""
    steps, size = task.steps, task.settings.batch_size
    stays = torch.zeros(size, dtype=torch.long, device=steps.device)
    count = torch.zeros((), dtype=torch.long, device=steps.device)
    grain = -(-int(steps.reach.max()) // MOST_SHAPES)
    held: list[Pace] = []

    def work(n_steps: int) -> None:
        _step(task, moving, steps.padded_batch(stays, count, n_steps), held[0])

    replay = Replay(work, moving.tensors())

    def learn(part: Ints, pace: Pace) -> None:
        if not held:
            held.append(Pace(*(value.clone() for value in pace)))
        for place, value in zip(held[0], pace, strict=True):
            place.copy_(value)
        filled = np.append(part, np.full(size - len(part), part[0]))
        stays.copy_(torch.from_numpy(filled).pin_memory(), non_blocking=True)
        count.fill_(len(part))
        replay(-(-int(steps.reach[part].max()) // grain) * grain)

    return learn


def _is_lesser(settings: Settings, device: torch.device) -> bool:
    """Whether to round products to bfloat16: where it was asked for and is of use."""
    if settings.precision == "float32":
        return False
    if device.type != "cuda":
        _LOG.warning("bfloat16 is for a GPU: on the CPU training stays in float32.")
        return False
    return True


def _step(task: _Task, moving: Moving, batch: Batch, pace: Pace) -> None:
    """One step of every network on one batch."""
    own = {name: value.detach().requires_grad_() for name, value in moving.parameters.items()}
    masks = _dropout(task, batch, pace.key, own["head.weight"])
    # Without the cache of casts, which a captured step would take for its own.
    kind = pace.key.device.type
    with torch.autocast(kind, torch.bfloat16, enabled=task.lesser, cache_enabled=False):
        outputs = forward(
            task.network,
            own,
            batch,
            task.steps,
            keep_inputs=masks.inputs,
            keep_state=masks.state,
        )
    values = task.objective(outputs, batch.seen)
    shares = task.weight[:, batch.owner].to(values.dtype)
    if batch.real is not None:
        shares = shares * batch.real
    risk = (values * shares).sum(1) / shares.sum(1).clamp_min(1e-12)
    gradients = torch.autograd.grad(risk.sum(), list(own.values()))
    with torch.no_grad():
        moving.tally.add_(risk)
        adam(moving, gradients, pace, task.settings.clip_norm)


def _mean_loss(state: State, settings: Settings, n_batches: int) -> float:
    """Mean training loss of the epoch over the networks that still learn."""
    running = state.waited < settings.patience
    return float(state.tally[running].mean()) / n_batches


def _dropout(task: _Task, batch: Batch, key: Tensor, head: Tensor) -> Masks:
    """What is hidden at this learning step."""
    settings, rows = task.settings, batch.rows.flatten().to(torch.int32)
    width = head.shape[1] - task.network.n_static
    asked = rows if batch.slots is None else rows[batch.slots]
    state = hide(asked, width, key.to(torch.int32), settings.dropout)
    other = mix(key.to(torch.int32) + INPUTS)
    inputs = hide(rows, task.network.n_features, other, settings.input_dropout)
    return Masks(*(None if m is None else m.to(head.dtype) for m in (state, inputs)))


def _order(settings: Settings, epoch: int) -> np.random.Generator:
    """The order of an epoch depends on its number alone, so that a resumed run finds it again."""
    return np.random.default_rng([settings.seed, epoch])


def _all_stopped(state: State, settings: Settings) -> bool:
    return bool((state.waited >= settings.patience).all())
