"""The one training loop: a bundle of networks, one pass a stay, resumable at any batch."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from etips.learn.training.epoch_report import EpochReport, Report
from etips.learn.training.hands import Hands, at_work
from etips.learn.training.learning_step import Task, epoch_parts, use_bfloat16
from etips.learn.training.objectives import Objective
from etips.learn.training.optimiser import Schedule, epoch_schedule
from etips.learn.training.settings import Settings
from etips.learn.training.state import State
from etips.learn.training.validation import Validation, keep_best
from etips.models.batches import StepTensors
from etips.models.bundle import Bundle


def train(
    bundle: Bundle,
    steps: StepTensors,
    objective: Objective,
    *,
    weight: Tensor,
    held_out: Tensor,
    settings: Settings,
    stop_by_others: bool = False,
    learning_rates: Tensor | None = None,
    weight_decays: Tensor | None = None,
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
        stop_by_others: Whether what stops a network is the held-out risk of all others.
        learning_rates: One a network, shape (J,); that of the settings if left out.
        weight_decays: The same.
        report: Told after every epoch.
        state: Where an interrupted run stood.
        keep: Called with the state after every batch, or after some where processes share the
            work, to save it now and then.
    """
    state = state or State.start(bundle)
    bfloat16 = use_bfloat16(settings, bundle.device)
    task = Task(bundle.network, steps, objective, weight, settings, bfloat16)
    validation = Validation(
        bundle.network,
        steps,
        objective,
        held_out,
        weigh=report is not None,
        by_others=stop_by_others,
    )
    rates = (learning_rates, weight_decays)
    training = _Training(task, state, rates, validation, keep)
    training.run(report)
    return state.trained(bundle.network), state


@dataclass(eq=False)
class _Training:
    """A training at work: what it does, where it stands, and who is told.

    Args:
        task: Of all networks.
        state: Where they stand.
        rates: Learning rates and weight decays of all, each of shape (J,) or None.
        validation: Of all.
        keep: Told of the state after every batch.
    """

    task: Task
    state: State
    rates: tuple[Tensor | None, Tensor | None]
    validation: Validation
    keep: Callable[[State], None] | None

    def run(self, report: Report | None) -> None:
        """Go through epochs until the last, or until every network has stopped."""
        if not self._is_over():
            with at_work(self.task, self.state, self.validation) as hands:
                self._run(hands, report)

    def _run(self, hands: Hands, report: Report | None) -> None:
        state, settings = self.state, self.task.settings
        started, begun_at = time.perf_counter(), state.epoch
        while not self._is_over():
            loss = self._learn_epoch(hands)
            factor = keep_best(state, self.validation, settings.patience, hands.totals())
            state.epoch, state.batch = state.epoch + 1, 0
            state.tally.zero_()
            if report is not None:
                took = (time.perf_counter() - started) / (state.epoch - begun_at)
                report(_standing(state, settings, loss, factor, took))
            self._save()

    def _learn_epoch(self, hands: Hands) -> float:
        """Learn from every batch that the epoch has left; return its mean loss."""
        state, parts = self.state, epoch_parts(self.task, self.state.epoch)
        for n_done in hands.learn(parts, self._schedule(len(parts))):
            state.batch, state.step = state.batch + n_done, state.step + n_done
            self._save()
        return mean_loss(state, self.task.settings, len(parts))

    def _is_over(self) -> bool:
        state, settings = self.state, self.task.settings
        return state.epoch >= settings.epochs or not state.running(settings.patience).any()

    def _schedule(self, n_batches: int) -> Schedule:
        rates, decays = self.rates
        return epoch_schedule(
            self.state, self.task.settings, n_batches, learning_rates=rates, weight_decays=decays
        )

    def _save(self) -> None:
        if self.keep is not None:
            self.keep(self.state)


def mean_loss(state: State, settings: Settings, n_batches: int) -> float:
    """Mean training loss of the epoch over the networks that still learn."""
    return float(state.tally[state.running(settings.patience)].mean()) / n_batches


def _standing(
    state: State, settings: Settings, loss: float, factor: float | None, took: float
) -> EpochReport:
    """The report of an epoch, one of which `took` so many seconds."""
    return EpochReport(
        epoch=state.epoch,
        epochs=settings.epochs,
        loss=loss,
        held_out=float(state.best_risk.min()),
        seconds_left=took * (settings.epochs - state.epoch),
        matching_factor=factor,
    )
