"""Trains what a learner asks for: with reports, checkpoints, and as many at once as memory holds.

A learner calls `trainer.train(TrainingRequest(...))` and has its networks back. They are taken from
the checkpoints if an earlier process trained them, and trained in parts one after another, with the
same result, where memory does not hold all of them.
"""

import math
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from etips.learn.fitting.prepare import Prepared
from etips.learn.training import memory
from etips.learn.training.epoch_report import EpochReport, Report
from etips.learn.training.loop import train
from etips.learn.training.objectives import Objective, part_of
from etips.learn.training.settings import Settings
from etips.learn.training.state import State
from etips.models.bundle import Bundle


@dataclass(frozen=True, eq=False)
class TrainingRequest:
    """Networks to be trained, each at its held-out best when they come back.

    Args:
        prepared: The stays.
        bundle: Where to start: sets of one network a fold, set by set.
        objective: What to minimise; its members come set by set.
        stage: What it is called, in run folders and reports.
        settings: How.
        stop_by_others: Whether what stops a network is the held-out risk of all others: a judge
            must not meet networks whose epoch was chosen on the stays that it judges them by.
    """

    prepared: Prepared
    bundle: Bundle
    objective: Objective
    stage: str
    settings: Settings
    stop_by_others: bool = False

    def part(self, these: slice) -> "TrainingRequest":
        """The request of some of its networks, a stage of its own."""
        return replace(
            self,
            bundle=self.bundle.select(range(these.start, these.stop)),
            objective=part_of(self.objective, these),
            stage=f"{self.stage}-{these.start}-{these.stop}",
        )


class Stage(Protocol):
    """One training: where an earlier process left it, and a way to keep where it stands."""

    @property
    def state(self) -> State | None:
        """Where it stood; None if it is new or finished."""

    @property
    def networks(self) -> Bundle | None:
        """What it came to; None unless it is finished."""

    def keep(self, state: State) -> None:
        """Save the state, if it is time."""

    def finish(self, networks: Bundle) -> Bundle:
        """Save what the training came to; return it as a resumed run will find it."""

    def reporting(self, report: Report | None) -> Report | None:
        """A report that also says which stage it is, and writes the log."""


@runtime_checkable
class Checkpoints(Protocol):
    """A place that keeps the stages of one learner."""

    def stage(self, name: str, start: Bundle, settings: Settings) -> Stage:
        """Begin a training, or take it up where an earlier process was stopped.

        Args:
            name: Letters, digits and hyphens; one name a training.
            start: The networks it starts from.
            settings: How it trains.
        """

    def part_size(self, name: str) -> int | None:
        """Networks a part of a stage that was cut into parts; None if it was not, or is new."""

    def note(self, stage: str, event: str) -> None:
        """Write a line into the log, in words without a value from the data."""


class UnkeptStage:
    """A training that nobody keeps.

    Args:
        name: What it is called in reports.
    """

    state: State | None = None
    networks: Bundle | None = None

    def __init__(self, name: str) -> None:
        self.name = name

    def keep(self, state: State) -> None:
        """Nothing."""

    def finish(self, networks: Bundle) -> Bundle:
        """The networks as they are."""
        return networks

    def reporting(self, report: Report | None) -> Report | None:
        """A report that also says which stage it is."""
        if report is None:
            return None
        name = self.name

        def tell(standing: EpochReport) -> None:
            report(replace(standing, stage=name))

        return tell


class NoCheckpoints:
    """Nothing is kept."""

    def stage(self, name: str, start: Bundle, settings: Settings) -> Stage:  # noqa: ARG002
        """A training that begins at its beginning."""
        return UnkeptStage(name)

    def part_size(self, name: str) -> int | None:  # noqa: ARG002
        """None: no stage was begun before."""
        return None

    def note(self, stage: str, event: str) -> None:
        """Nothing."""


class Trainer:
    """Handed down to whatever needs networks trained.

    Args:
        report: Called after every epoch, and for every model that is fitted without epochs.
        checkpoints: Keep the work, so that a later process goes on where this one was stopped.
    """

    def __init__(
        self, *, report: Report | None = None, checkpoints: Checkpoints | None = None
    ) -> None:
        self._report = report
        self._checkpoints = checkpoints or NoCheckpoints()

    def train(self, request: TrainingRequest) -> Bundle:
        """Train all networks of a request."""
        n_networks, checkpoints = request.bundle.n_members, self._checkpoints
        if size := checkpoints.part_size(request.stage):
            parts = memory.cut(n_networks, size)  # as the interrupted run had them
        else:
            steps = request.prepared.steps
            each = memory.estimate(request.bundle.network, steps, request.settings)
            parts = memory.parts_of(n_networks, each, memory.room(steps.device))
        if len(parts) == 1:
            return self._train_part(request, parts[0])
        checkpoints.note(request.stage, f"{n_networks} networks in {len(parts)} parts, for memory")
        return Bundle.join([self._train_part(request.part(these), these) for these in parts])

    def fitted(self, name: str, seconds: float) -> None:
        """Report a model that was fitted without epochs, in so many seconds on one core."""
        self._checkpoints.note(name, f"fitted in {seconds:.1f} s on one core")
        if self._report is not None:
            self._report(EpochReport(1, 1, math.nan, math.nan, 0.0, None, name, seconds))

    def _train_part(self, request: TrainingRequest, these: slice) -> Bundle:
        """Train networks that are these of all that were asked for."""
        prepared = request.prepared
        start = request.bundle.to(prepared.steps.device)
        stage = self._checkpoints.stage(request.stage, start, request.settings)
        if stage.networks is not None:
            return stage.networks
        n_sets = -(-these.stop // prepared.folds.n_networks)
        weight, held_out = (values[these] for values in prepared.folds.tile(n_sets))
        with memory.refusing_lack():
            best, _ = train(
                start,
                prepared.steps,
                request.objective,
                weight=weight,
                held_out=held_out,
                settings=request.settings,
                n_folds=prepared.folds.n_networks,
                stop_by_others=request.stop_by_others,
                report=stage.reporting(self._report),
                state=stage.state,
                keep=stage.keep,
            )
        return stage.finish(best)
