"""What the driver asks of a place that keeps training, so that it can be taken up again.

Run folders are such places (`etips.runs`); learning itself knows none of them.
"""

from dataclasses import replace
from typing import Protocol, runtime_checkable

from etips.learn.training.epoch_report import EpochReport, Report
from etips.learn.training.settings import Settings
from etips.learn.training.state import State
from etips.models.bundle import Bundle


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
