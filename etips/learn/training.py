"""The one training loop: a bundle of networks, one pass a stay, resumable at any batch."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from etips.errors import SettingError
from etips.learn.objectives import Objective
from etips.models.batches import Batch, StepTensors
from etips.models.bundle import Bundle

Report = Callable[[Mapping[str, float]], None]
"""Told after every epoch how it stands: epoch, loss, held-out risk, seconds left."""


@dataclass(frozen=True)
class Settings:
    """How to train.

    Args:
        epochs: Most passes over the training stays.
        batch_size: Stays a step.
        learning_rate: Of Adam at its highest; falls to zero along half a cosine.
        weight_decay: Decoupled, on weights and not on biases.
        clip_norm: Longest gradient a network may have; longer ones are shortened.
        patience: Epochs without a better held-out risk after which a network stops.
        dropout: Share of the state that is hidden from the head while training.
        seed: Of the batches and of dropout; the networks' own seeds are with the bundle.
    """

    epochs: int = 30
    batch_size: int = 256
    learning_rate: float = 2e-3
    weight_decay: float = 1e-4
    clip_norm: float = 1.0
    patience: int = 8
    dropout: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "patience"):
            if getattr(self, name) < 1:
                raise SettingError(name, "must be at least 1")
        if not 0 <= self.dropout < 1:
            raise SettingError("dropout", "must be in [0, 1)")
        if not self.learning_rate > 0:
            raise SettingError("learning_rate", "must be above 0")


@dataclass(eq=False)
class State:
    """Everything a run needs to go on: with it, and the settings, the future is determined."""

    parameters: dict[str, Tensor]
    first: dict[str, Tensor]
    second: dict[str, Tensor]
    best: dict[str, Tensor]
    best_risk: Tensor
    waited: Tensor
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

    Every network sees the same batches; what it learns from is its own row of `weight`. So a
    network in a bundle becomes what it would have become alone, but for rounding.

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
    stays = np.flatnonzero((weight > 0).any(0).cpu().numpy())
    started, begun_at = time.perf_counter(), state.epoch
    n_batches = -(-len(stays) // settings.batch_size)
    while state.epoch < settings.epochs and not _all_stopped(state, settings):
        parts = steps.parts(stays, settings.batch_size, _order(settings, state.epoch))
        for part in parts[state.batch :]:
            pace = _pace(state.step, settings.epochs * n_batches)
            batch = steps.batch(part)
            _learn(bundle, state, batch, steps, objective, weight, settings, rates * pace)
            state.batch, state.step = state.batch + 1, state.step + 1
            if keep is not None:
                keep(state)
        _look(bundle, state, steps, objective, held_out, settings)
        state.epoch, state.batch = state.epoch + 1, 0
        if report is not None:
            took = (time.perf_counter() - started) / (state.epoch - begun_at)
            best = float(state.best_risk.min())
            left = took * (settings.epochs - state.epoch)
            report({"epoch": state.epoch, "held_out": best, "seconds_left": left})
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
            found[:, place[batch.seen]] = _forward(bundle, bundle.parameters, batch, steps)
    return found


def run_batch(bundle: Bundle, batch: Batch, steps: StepTensors) -> Tensor:
    """Outputs at the decisions of one batch, shape (J, n, K)."""
    return _forward(bundle, bundle.parameters, batch, steps)


def _forward(
    bundle: Bundle,
    parameters: Mapping[str, Tensor],
    batch: Batch,
    steps: StepTensors,
    keep: Tensor | None = None,
) -> Tensor:
    return bundle.network.outputs(
        parameters, steps.inputs(batch.rows), steps.static[batch.stay], slots=batch.slots, keep=keep
    )


def _learn(
    bundle: Bundle,
    state: State,
    batch: Batch,
    steps: StepTensors,
    objective: Objective,
    weight: Tensor,
    settings: Settings,
    rates: Tensor,
) -> None:
    """One step of every network on one batch."""
    if len(batch.slots) == 0:
        return
    moving = {name: value.requires_grad_() for name, value in state.parameters.items()}
    keep = _dropout(bundle, batch, settings, state.step)
    values = objective(_forward(bundle, moving, batch, steps, keep), batch.seen)
    shares = weight[:, batch.owner].to(values.dtype)
    risk = (values * shares).sum(1) / shares.sum(1).clamp_min(1e-12)
    gradients = torch.autograd.grad(risk.sum(), list(moving.values()))
    state.parameters = {name: value.detach() for name, value in moving.items()}
    running = state.waited < settings.patience
    with torch.no_grad():
        _adam(state, dict(zip(moving, gradients, strict=True)), rates * running, settings)


def _adam(state: State, gradients: dict[str, Tensor], rates: Tensor, settings: Settings) -> None:
    """Adam with decoupled weight decay, every network with its own rate and gradient norm."""
    squares = sum(gradient.flatten(1).square().sum(1) for gradient in gradients.values())
    assert isinstance(squares, Tensor)
    shrink = (settings.clip_norm / squares.sqrt().clamp_min(1e-12)).clamp_max(1.0)
    time_ = state.step + 1
    slow, fast, tiny = 0.9, 0.999, 1e-8
    for name, value in state.parameters.items():
        shape = (-1, *[1] * (value.dim() - 1))
        rate, gradient = rates.to(value.dtype).view(shape), gradients[name] * shrink.view(shape)
        first, second = state.first[name], state.second[name]
        first.mul_(slow).add_(gradient, alpha=1 - slow)
        second.mul_(fast).addcmul_(gradient, gradient, value=1 - fast)
        spread = (second / (1 - fast**time_)).sqrt_().add_(tiny)
        if not name.endswith("bias"):
            value.mul_(1 - rate * settings.weight_decay)
        value.sub_(rate * (first / (1 - slow**time_)) / spread)


def _look(
    bundle: Bundle,
    state: State,
    steps: StepTensors,
    objective: Objective,
    held_out: Tensor,
    settings: Settings,
) -> None:
    """Judge every network on its held-out stays and keep it if it is its best so far."""
    risk = held_out_risk(Bundle(bundle.network, state.parameters), steps, objective, held_out)
    judged = (held_out > 0).any(1)
    better = (risk < state.best_risk) | ~judged
    better &= state.waited < settings.patience
    state.best_risk = torch.where(better, risk, state.best_risk)
    state.waited = torch.where(better, torch.zeros_like(state.waited), state.waited + 1)
    for name, value in state.parameters.items():
        chosen = better.view(-1, *[1] * (value.dim() - 1))
        state.best[name] = torch.where(chosen, value, state.best[name])


def held_out_risk(
    bundle: Bundle, steps: StepTensors, objective: Objective, held_out: Tensor
) -> Tensor:
    """Mean of the objective over each network's held-out stays, shape (J,); 0 if it has none."""
    total = torch.zeros(bundle.n_members, dtype=torch.float64, device=bundle.device)
    count = torch.zeros_like(total)
    stays = np.flatnonzero((held_out > 0).any(0).cpu().numpy())
    with torch.no_grad():
        for batch in steps.batches(stays, 1024):
            values = objective(_forward(bundle, bundle.parameters, batch, steps), batch.seen)
            shares = held_out[:, batch.owner].double()
            total += (values.double() * shares).sum(1)
            count += shares.sum(1)
    return total / count.clamp_min(1e-12)


def _dropout(bundle: Bundle, batch: Batch, settings: Settings, step: int) -> Tensor | None:
    """A mask that is the same for all networks, so that none depends on its neighbours."""
    if settings.dropout == 0:
        return None
    generator = torch.Generator().manual_seed(settings.seed * 1_000_003 + step)
    width = bundle.network.encoder.size(bundle.network.n_features)
    kept = torch.rand(len(batch.slots), width, generator=generator) >= settings.dropout
    return (kept / (1 - settings.dropout)).to(batch.rows.device)


def _order(settings: Settings, epoch: int) -> np.random.Generator:
    """The order of an epoch depends on its number alone, so that a resumed run finds it again."""
    return np.random.default_rng([settings.seed, epoch])


def _pace(step: int, n_steps: int) -> float:
    """Share of the learning rate: half a cosine from 1 to 0."""
    return 0.5 * (1 + float(np.cos(np.pi * min(step / max(n_steps, 1), 1.0))))


def _all_stopped(state: State, settings: Settings) -> bool:
    return bool((state.waited >= settings.patience).all())
