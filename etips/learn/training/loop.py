"""The one training loop: a bundle of networks, one pass a stay, resumable after any epoch."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from etips.learn.training.epoch_report import EpochReport, Report
from etips.learn.training.learning_step import Task, epoch_parts, learning_steps, use_bfloat16
from etips.learn.training.objectives import Objective, Weighted
from etips.learn.training.optimiser import epoch_schedule
from etips.learn.training.parallel import side_by_side
from etips.learn.training.settings import Settings
from etips.learn.training.state import State
from etips.learn.training.validation import Validation, keep_best, risks_of_others
from etips.models.batches import StepTensors
from etips.models.bundle import Bundle
from etips.models.encoders.last_step import LastStep
from etips.models.network import Network

WORTH = 2**13
"""Numbers in the states of a step from which networks of a fold learn by themselves; below it a
step takes as long as its operations do to begin, however many networks it has."""

LIGHT = 16
"""Numbers in a state without memory that cost as much as one of a recurrent layer."""

FEW = 10
"""Steps that are done sooner than processes are at work."""

PARTS = 5
"""Parts of networks that are all of one fold."""


def train(
    bundle: Bundle,
    steps: StepTensors,
    objective: Objective,
    *,
    weight: Tensor,
    held_out: Tensor,
    settings: Settings,
    n_folds: int = 1,
    stop_by_others: bool = False,
    report: Report | None = None,
    state: State | None = None,
    keep: Callable[[State], None] | None = None,
) -> tuple[Bundle, State]:
    """Minimise `objective` for every network of the bundle; return each at its held-out best.

    The batches are the same for all networks; what a network learns from is its own row of
    `weight`. So a network becomes what it would have become alone, but for rounding.

    Args:
        bundle: Where to start.
        steps: The stays.
        objective: What to minimise.
        weight: How much each stay counts for each network in training, shape (J, n_stays).
        held_out: The same for early stopping, shape (J, n_stays); all zero trains to the end.
        settings: How.
        n_folds: Networks come set by set, one a fold; those of a fold are one bundle, which is
            read and trained by itself, on a CPU in a process of its own.
        stop_by_others: Whether what stops a network is the held-out risk of all others.
        report: Called after every epoch.
        state: Where an interrupted run stood.
        keep: Called with the state after every epoch, to save it now and then.
    """
    state = state or State.start(bundle)
    state.share()
    network, n_networks = bundle.network, bundle.n_members
    bfloat16 = use_bfloat16(settings, bundle.device)
    task = Task(network, steps, objective, weight, settings, bfloat16)
    weigh = report is not None and isinstance(objective, Weighted)
    validation = Validation(network, steps, objective, held_out, weigh=weigh)
    parts = [
        _Part.of(these, task, state, validation)
        for these in _parts(network, steps, settings, n_networks, n_folds)
    ]
    if not _is_over(state, settings):
        training = _Training(parts, state, settings, (held_out > 0).any(1), stop_by_others, weigh)
        training.run(report, keep)
    return state.trained(network), state


@dataclass(frozen=True, eq=False)
class _Part:
    """Some networks at work; they touch no others.

    Args:
        these: Which.
        task: Theirs.
        state: Theirs, in the memory of all.
        validation: Theirs.
        tally: Training loss over the batches of an epoch, shape (J,).
    """

    these: slice
    task: Task
    state: State
    validation: Validation
    tally: Tensor

    @classmethod
    def of(cls, these: slice, task: Task, state: State, validation: Validation) -> "_Part":
        """Some networks of all."""
        own = state.of(these)
        tally = torch.zeros(len(own.waited), dtype=torch.float64, device=own.waited.device)
        return cls(these, task.of(these), own, validation.of(these), tally)

    def epochs(self) -> Callable[[int], tuple[list[float], ...]]:
        """What does an epoch, given its number.

        It returns, by network, the losses of the batches added up, held-out risks and mean weights.
        """
        state, settings = self.state, self.task.settings
        learn = learning_steps(self.task, state, self.tally)

        def epoch(number: int) -> tuple[list[float], ...]:
            self.tally.zero_()
            batches = epoch_parts(self.task, number)
            if state.running(settings.patience).any():
                schedule = epoch_schedule(state, settings, number, len(batches))
                for place, batch in enumerate(batches):
                    learn(batch, schedule.at(place))
            risk, factor = self.validation.risks(state.parameters)
            return self.tally.tolist(), risk.tolist(), factor.tolist()

        return epoch


def _parts(
    network: Network, steps: StepTensors, settings: Settings, n_networks: int, n_folds: int
) -> list[slice]:
    """Networks that learn by themselves: those of a fold, or all where that is not worth while.

    It depends on nothing of the machine, so that neither does what they learn.
    """
    n_parts = min(n_folds if n_folds > 1 else PARTS, n_networks)
    width = network.encoder.size(network.n_features)
    if isinstance(network.encoder, LastStep):
        width = max(width // LIGHT, 1)
    numbers = n_networks / n_parts * min(settings.batch_size, steps.n_stays) * width
    if steps.device.type != "cpu" or numbers < WORTH:
        return [slice(0, n_networks)]
    return [slice(first, n_networks, n_parts) for first in range(n_parts)]


@dataclass(frozen=True, eq=False)
class _Training:
    """All networks at work.

    Args:
        parts: Of the networks.
        state: Of all of them.
        settings: How they are trained.
        validated: Which have held-out stays, shape (J,).
        stop_by_others: As in `train`.
        weigh: Whether mean weights are found.
    """

    parts: list[_Part]
    state: State
    settings: Settings
    validated: Tensor
    stop_by_others: bool
    weigh: bool

    def run(self, report: Report | None, keep: Callable[[State], None] | None) -> None:
        """Go through epochs until the last, or until every network has stopped."""
        state, settings, validated = self.state, self.settings, self.validated
        started, begun_at = time.perf_counter(), state.epoch
        n_batches = len(epoch_parts(self.parts[0].task, 0))
        few = len(self.parts) * n_batches * (settings.epochs - state.epoch) <= FEW
        with side_by_side([part.epochs() for part in self.parts], in_turn=few) as ask:
            while not _is_over(state, settings):
                running = state.running(settings.patience)
                loss, risk, factor = self._gather(ask(state.epoch))
                chosen_by = risks_of_others(risk, validated) if self.stop_by_others else risk
                keep_best(state, chosen_by, validated, settings.patience)
                state.epoch += 1
                if report is not None:
                    took = (time.perf_counter() - started) / (state.epoch - begun_at)
                    weighed = self.weigh and bool(validated.any())
                    report(
                        EpochReport(
                            epoch=state.epoch,
                            epochs=settings.epochs,
                            loss=float(loss[running].mean()) / n_batches,
                            held_out=float(state.best_risk.min()),
                            seconds_left=took * (settings.epochs - state.epoch),
                            matching_factor=float(factor[validated].mean()) if weighed else None,
                        )
                    )
                if keep is not None:
                    keep(state)

    def _gather(self, answers: list[tuple[list[float], ...]]) -> Tensor:
        """What the parts returned, of all networks, shape (3, J)."""
        gathered = torch.zeros((3, len(self.validated)), dtype=torch.float64)
        for part, own in zip(self.parts, answers, strict=True):
            gathered[:, part.these] = torch.tensor(own, dtype=torch.float64)
        return gathered.to(self.validated.device)


def _is_over(state: State, settings: Settings) -> bool:
    return state.epoch >= settings.epochs or not bool(state.running(settings.patience).any())
