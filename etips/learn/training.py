"""The one training loop: a bundle of networks, one pass a stay, resumable at any batch."""

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from etips.data.decisions import Ints
from etips.errors import SettingError
from etips.learn.captured import Replay
from etips.learn.dropout import INPUTS, Masks, hide, mix
from etips.learn.objectives import Objective, Weighted
from etips.models.batches import Batch, StepTensors
from etips.models.bundle import Bundle
from etips.models.network import Network

_LOG = logging.getLogger(__name__)
SLOW, FAST, TINY = 0.9, 0.999, 1e-8  # Adam's usual
MOST_SHAPES = 12
"""Lengths of a batch that are captured on a GPU; longer data are rounded up to fewer."""

Precision = Literal["float32", "bfloat16"]
"""Of the products while training."""

LOOK = 1024
"""Stays that are asked at once where nothing is learnt."""

Report = Callable[[Mapping[str, float | str]], None]
"""Told after every epoch how it stands: `epoch` of `epochs`, mean `loss` of the networks that still
learn, best `held_out` risk, `seconds_left`; for policies also the mean held-out `matching_factor`;
and where a learner is fitted, the `stage`."""


@dataclass(frozen=True)
class Settings:
    """How to train.

    Args:
        epochs: Most passes over the training stays.
        batch_size: Stays a step.
        learning_rate: Of Adam at its highest; falls to zero along half a cosine.
        weight_decay: Decoupled, on weights and not on biases.
        clip_norm: Longest gradient a network may have; longer ones are shortened; infinity for any.
        patience: Epochs without a better held-out risk after which a network stops.
        dropout: Share of the state that is hidden from the head while training.
        input_dropout: Share of the features that is hidden from the encoder while training.
        precision: Of the products while training. On a GPU bfloat16 is faster and rounds to three
            digits; weights, gradient sums and held-out risks stay in float32.
        seed: Of the batches and of dropout; the networks' own seeds are with the bundle.
    """

    epochs: int = 30
    batch_size: int = 256
    learning_rate: float = 2e-3
    weight_decay: float = 1e-4
    clip_norm: float = 1.0
    patience: int = 8
    dropout: float = 0.0
    input_dropout: float = 0.0
    precision: Precision = "float32"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "patience"):
            if getattr(self, name) < 1:
                raise SettingError(name, "must be at least 1")
        for name in ("dropout", "input_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise SettingError(name, "must be in [0, 1)")
        if not 0 < self.learning_rate < math.inf:
            raise SettingError("learning_rate", "must be above 0 and finite")
        if not 0 <= self.weight_decay < math.inf:
            raise SettingError("weight_decay", "must be finite and not negative")
        if not self.clip_norm > 0:
            raise SettingError("clip_norm", "must be above 0")
        if self.precision not in get_args(Precision):
            raise SettingError("precision", f"must be {' or '.join(get_args(Precision))}")


@dataclass(eq=False)
class State:
    """Everything a run needs to go on: with it, and the settings, the future is determined.

    `tally` adds up the training loss of each network over the batches of the epoch.
    """

    parameters: dict[str, Tensor]
    first: dict[str, Tensor]
    second: dict[str, Tensor]
    best: dict[str, Tensor]
    best_risk: Tensor
    waited: Tensor
    tally: Tensor
    epoch: int = 0
    batch: int = 0
    step: int = 0
    history: list[dict[str, float]] = field(default_factory=list)

    @classmethod
    def start(cls, bundle: Bundle) -> "State":
        """The state before the first step."""
        own = {name: value.detach().clone() for name, value in bundle.parameters.items()}
        n_members, device = bundle.n_members, bundle.device
        return cls(
            parameters=own,
            first={name: torch.zeros_like(value) for name, value in own.items()},
            second={name: torch.zeros_like(value) for name, value in own.items()},
            best={name: value.clone() for name, value in own.items()},
            best_risk=torch.full((n_members,), torch.inf, dtype=torch.float64, device=device),
            waited=torch.zeros(n_members, dtype=torch.long, device=device),
            tally=torch.zeros(n_members, dtype=torch.float64, device=device),
        )


def train(
    bundle: Bundle,
    steps: StepTensors,
    objective: Objective,
    *,
    weight: Tensor,
    held_out: Tensor,
    settings: Settings,
    learning_rates: Tensor | None = None,
    report: Report | None = None,
    state: State | None = None,
    keep: Callable[[State], None] | None = None,
) -> tuple[Bundle, State]:
    """Minimise `objective` for every network of the bundle; return each at its held-out best.

    Every network sees the same batches, of all stays that hold a decision; what it learns from is
    its own row of `weight`. So a network in a bundle becomes what it would have become alone, but
    for rounding.

    Args:
        bundle: Where to start.
        steps: The stays.
        objective: What to minimise.
        weight: How much each stay counts for each network in training, shape (J, n_stays).
        held_out: The same for early stopping, shape (J, n_stays); all zero trains to the end.
        settings: How.
        learning_rates: One a network, shape (J,); that of the settings if left out.
        report: Told after every epoch.
        state: Where an interrupted run stood.
        keep: Called after every batch with the state, to save it now and then.
    """
    state = state or State.start(bundle)
    rates = learning_rates
    if rates is None:
        rates = torch.full((bundle.n_members,), settings.learning_rate, device=bundle.device)
    lesser = _is_lesser(settings, bundle.device)
    task = _Task(bundle.network, steps, objective, weight, settings, lesser)
    learn = _captured(task, state) if bundle.device.type == "cuda" else partial(_learn, task, state)
    stays = np.arange(steps.n_stays)
    started, begun_at = time.perf_counter(), state.epoch
    while state.epoch < settings.epochs and not _all_stopped(state, settings):
        parts = steps.parts(stays, settings.batch_size, _order(settings, state.epoch))
        paces = _paces(state, settings, len(parts), rates)
        for part in parts[state.batch :]:
            learn(part, paces.at(state.batch))
            state.batch, state.step = state.batch + 1, state.step + 1
            if keep is not None:
                keep(state)
        loss = _mean_loss(state, settings, len(parts))
        told = report is not None
        factor = _look(bundle, state, steps, objective, held_out, settings, weigh=told)
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


def outputs_of(bundle: Bundle, steps: StepTensors, *, batch_size: int = 1024) -> Tensor:
    """Outputs of every network at every decision, shape (J, n_decisions, K), in decision order."""
    rows = torch.from_numpy(np.flatnonzero(steps.answers)).to(steps.device)
    place = torch.empty(len(steps.answers), dtype=torch.long, device=steps.device)
    place[rows] = torch.arange(len(rows), device=steps.device)
    found = torch.empty(
        (bundle.n_members, len(rows), bundle.network.n_outputs),
        dtype=bundle.parameters["head.bias"].dtype,
        device=steps.device,
    )
    with torch.no_grad():
        for batch in steps.batches(np.arange(steps.n_stays), batch_size):
            found[:, place[batch.seen]] = run_batch(bundle, batch, steps)
    return found


def run_batch(bundle: Bundle, batch: Batch, steps: StepTensors) -> Tensor:
    """Outputs at the decisions of one batch, shape (J, n, K)."""
    return _forward(bundle.network, bundle.parameters, batch, steps)


@dataclass(frozen=True, eq=False)
class _Task:
    """What all steps of a run share; `lesser`: whether products are in bfloat16."""

    network: Network
    steps: StepTensors
    objective: Objective
    weight: Tensor
    settings: Settings
    lesser: bool = False


class _Pace(NamedTuple):
    """What changes from step to step, as tensors, so that a captured step can read it.

    Args:
        rates: Learning rate of each network, shape (n, J) or (J,).
        first: What the running mean is divided by, since it starts at zero, shape (n,) or ().
        second: The same for the running square.
        key: Of the dropout.
    """

    rates: Tensor
    first: Tensor
    second: Tensor
    key: Tensor

    def at(self, number: int) -> "_Pace":
        """That of one step."""
        return _Pace(*(values[number] for values in self))


def _paces(state: State, settings: Settings, n_batches: int, rates: Tensor) -> _Pace:
    """Those of an epoch's steps; the rate falls along half a cosine, and is 0 once stopped."""
    step = np.arange(n_batches) + state.step - state.batch
    share = np.minimum(step / max(settings.epochs * n_batches, 1), 1.0)
    pace = torch.from_numpy(0.5 * (1 + np.cos(np.pi * share)))[:, None].to(rates.device)
    running = state.waited < settings.patience
    kind = next(iter(state.parameters.values())).dtype
    made = (
        1 - SLOW ** (step + 1.0),
        1 - FAST ** (step + 1.0),
        (settings.seed * 1_000_003 + step) % 2**31,
    )
    first, second, key = (torch.from_numpy(values).to(rates.device) for values in made)
    return _Pace((pace * rates * running).to(kind), first.to(kind), second.to(kind), key)


def _captured(task: _Task, state: State) -> Callable[[Ints, _Pace], None]:
    """Learning steps on a GPU: those of one length are captured once and replayed after."""
    steps, size = task.steps, task.settings.batch_size
    stays = torch.zeros(size, dtype=torch.long, device=steps.device)
    count = torch.zeros((), dtype=torch.long, device=steps.device)
    grain = -(-int(steps.reach.max()) // MOST_SHAPES)
    held: list[_Pace] = []

    def work(n_steps: int) -> None:
        _step(task, state, steps.padded_batch(stays, count, n_steps), held[0])

    moving = (state.parameters, state.first, state.second, {"": state.tally})
    replay = Replay(work, [value for group in moving for value in group.values()])

    def learn(part: Ints, pace: _Pace) -> None:
        if not held:
            held.append(_Pace(*(value.clone() for value in pace)))
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


def _learn(task: _Task, state: State, part: Ints, pace: _Pace) -> None:
    """One step of every network on some stays."""
    _step(task, state, task.steps.batch(part), pace)


def _step(task: _Task, state: State, batch: Batch, pace: _Pace) -> None:
    """One step of every network on one batch; changes the state's tensors where they are."""
    moving = {name: value.detach().requires_grad_() for name, value in state.parameters.items()}
    masks = _dropout(task, batch, pace.key, moving["head.weight"])
    # Without the cache of casts, which a captured step would take for its own.
    kind = pace.key.device.type
    with torch.autocast(kind, torch.bfloat16, enabled=task.lesser, cache_enabled=False):
        outputs = _forward(task.network, moving, batch, task.steps, masks)
    values = task.objective(outputs, batch.seen)
    shares = task.weight[:, batch.owner].to(values.dtype)
    if batch.real is not None:
        shares = shares * batch.real
    risk = (values * shares).sum(1) / shares.sum(1).clamp_min(1e-12)
    gradients = torch.autograd.grad(risk.sum(), list(moving.values()))
    with torch.no_grad():
        state.tally.add_(risk)
        _adam(state, gradients, pace, task.settings)


def _forward(
    network: Network,
    parameters: Mapping[str, Tensor],
    batch: Batch,
    steps: StepTensors,
    masks: Masks | None = None,
) -> Tensor:
    masks = masks or Masks()
    inputs = steps.inputs(batch.rows)
    if masks.inputs is not None:
        inputs = inputs * masks.inputs.view_as(inputs)
    static = steps.static[batch.stay]
    return network.outputs(parameters, inputs, static, slots=batch.slots, keep=masks.state)


def _adam(state: State, gradients: Sequence[Tensor], pace: _Pace, settings: Settings) -> None:
    """Adam with decoupled weight decay, every network with its own rate and gradient norm."""
    squares = torch.stack([gradient.flatten(1).square().sum(1) for gradient in gradients]).sum(0)
    shrink = (settings.clip_norm / squares.sqrt().clamp_min(1e-12)).clamp_max(1.0)
    for (name, value), whole in zip(state.parameters.items(), gradients, strict=True):
        shape = (-1, *[1] * (value.dim() - 1))
        rate, gradient = pace.rates.view(shape), whole * shrink.view(shape)
        first, second = state.first[name], state.second[name]
        first.lerp_(gradient, 1 - SLOW)
        second.mul_(FAST).addcmul_(gradient, gradient, value=1 - FAST)
        spread = (second / pace.second).sqrt_().add_(TINY)
        if value.dim() > 2:  # a weight and not a bias
            value.mul_(1 - rate * settings.weight_decay)
        value.sub_((first * (rate / pace.first)).div_(spread))


def _mean_loss(state: State, settings: Settings, n_batches: int) -> float:
    """Mean training loss of the epoch over the networks that still learn."""
    running = state.waited < settings.patience
    return float(state.tally[running].mean()) / n_batches


def _look(
    bundle: Bundle,
    state: State,
    steps: StepTensors,
    objective: Objective,
    held_out: Tensor,
    settings: Settings,
    *,
    weigh: bool = False,
) -> dict[str, float]:
    """Judge every network on its held-out stays and keep it if it is its best so far.

    Returns the mean matching factor of the networks there, if anybody asks and there is one.
    """
    networks = Bundle(bundle.network, state.parameters)
    weight = objective.weigh if weigh and isinstance(objective, Weighted) else None
    asked = [objective] if weight is None else [objective, weight]
    risk, *factors = held_out_means(networks, steps, asked, held_out)
    judged = (held_out > 0).any(1)
    better = (risk < state.best_risk) | ~judged
    better &= state.waited < settings.patience
    state.best_risk = torch.where(better, risk, state.best_risk)
    state.waited = torch.where(better, torch.zeros_like(state.waited), state.waited + 1)
    for name, value in state.parameters.items():
        chosen = better.view(-1, *[1] * (value.dim() - 1))
        state.best[name] = torch.where(chosen, value, state.best[name])
    if not factors or not judged.any():
        return {}
    return {"matching_factor": float(factors[0][judged].mean())}


def held_out_risk(
    bundle: Bundle, steps: StepTensors, objective: Objective, held_out: Tensor
) -> Tensor:
    """Mean of the objective over each network's held-out stays, shape (J,); 0 if it has none."""
    return held_out_means(bundle, steps, [objective], held_out)[0]


def held_out_means(
    bundle: Bundle, steps: StepTensors, asked: Sequence[Objective], held_out: Tensor
) -> list[Tensor]:
    """Means of several values over each network's held-out stays, each of shape (J,)."""
    count = torch.zeros(bundle.n_members, dtype=torch.float64, device=bundle.device)
    totals = [torch.zeros_like(count) for _ in asked]
    stays = np.flatnonzero((held_out > 0).any(0).cpu().numpy())
    with torch.no_grad():
        for batch in steps.batches(stays, LOOK):
            outputs = _forward(bundle.network, bundle.parameters, batch, steps)
            shares = held_out[:, batch.owner].double()
            for total, value in zip(totals, asked, strict=True):
                total += (value(outputs, batch.seen).double() * shares).sum(1)
            count += shares.sum(1)
    return [total / count.clamp_min(1e-12) for total in totals]


def _dropout(task: _Task, batch: Batch, key: Tensor, head: Tensor) -> Masks:
    """What is hidden at this learning step."""
    settings, rows = task.settings, batch.rows.flatten().to(torch.int32)
    width = head.shape[1] - task.network.n_static
    state = hide(rows, width, key.to(torch.int32), settings.dropout)
    other = mix(key.to(torch.int32) + INPUTS)
    inputs = hide(rows, task.network.n_features, other, settings.input_dropout)
    return Masks(*(None if m is None else m.to(head.dtype) for m in (state, inputs)))


def _order(settings: Settings, epoch: int) -> np.random.Generator:
    """The order of an epoch depends on its number alone, so that a resumed run finds it again."""
    return np.random.default_rng([settings.seed, epoch])


def _all_stopped(state: State, settings: Settings) -> bool:
    return bool((state.waited >= settings.patience).all())
