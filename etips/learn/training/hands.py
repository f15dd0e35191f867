"""Who does the steps of a training: this process alone, a GPU, or a crew of processes.

Networks of a bundle never touch each other. So each team of them goes through an epoch by itself,
in pieces of some batches, and whoever is free takes the next piece of the team that has most left.
More hands may have smaller teams (`team_steps`); what networks come to is the same to the bit.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch import Tensor

from etips.data.decisions import Ints
from etips.learn.training.crew import (
    Crew,
    Order,
    n_workers,
    one_thread,
    run,
    run_all,
    shared,
    working,
)
from etips.learn.training.dealing import Dealer, Part, Piece
from etips.learn.training.learning_step import (
    Learn,
    Task,
    TeamSteps,
    epoch_parts,
    learning_steps,
    team_steps,
)
from etips.learn.training.optimiser import Schedule
from etips.learn.training.state import Moving, State
from etips.learn.training.validation import Validation

SECONDS = 2.0
"""Between moments at which all teams have come equally far, about: a state can be kept then."""

FEW = 20
"""Steps of teams that are done sooner than processes are at work."""

LINE_BYTES = 64
"""Of a cache line."""

_FIRST = 4  # batches before the first such moment, when nobody knows how long they take


class Hands(Protocol):
    """Who does the steps of a training."""

    def learn(self, parts: Sequence[Ints], schedule: Schedule) -> Iterator[int]:
        """Learn from what the epoch has left; yield each time how many more batches are done.

        Args:
            parts: Stays of every batch of the epoch.
            schedule: Of the epoch.
        """

    def totals(self) -> list[Tensor]:
        """What the validation says of every team of its own, of the networks as they are."""


@contextmanager
def at_work(task: Task, state: State, validation: Validation) -> Iterator[Hands]:
    """Those who train, until the training ends.

    Args:
        task: What the steps share.
        state: Where the training stands; changed in place, and shared where processes take part.
        validation: Of all networks.
    """
    if task.steps.device.type != "cpu":
        yield _Alone(task, state, validation)
        return
    parts = epoch_parts(task, state.epoch)
    running = state.running(task.settings.patience)
    n_teams = len(team_steps(task, state.moving, running, n_workers(len(running))))
    n_steps = n_teams * len(parts) * (task.settings.epochs - state.epoch)
    size = n_workers(n_teams) if n_steps > FEW else 1
    with one_thread():  # others would spin between two operations, on cores that a crew needs
        if size == 1:
            line_up(state)
            yield _Alone(task, state, validation)
            return
        share_state(state)
        held = Schedule(*map(shared, _blank(len(parts), len(running), state)))
        piecework = _Piecework(task, state.moving, validation, held, size)
        with working(size, piecework) as crew:
            yield _Together(crew, piecework, state)


class _Alone:
    """This process, batch after batch."""

    def __init__(self, task: Task, state: State, validation: Validation) -> None:
        self._state, self._validation = state, validation
        self._learn: Learn = learning_steps(task, state.moving)

    def learn(self, parts: Sequence[Ints], schedule: Schedule) -> Iterator[int]:
        for number in range(self._state.batch, len(parts)):
            self._learn(parts[number], schedule.at(number))
            yield 1

    def totals(self) -> list[Tensor]:
        own = self._validation
        return [own.totals_of(n, self._state.parameters) for n in range(len(own.teams))]


class _Piecework:
    """What one of a crew does: some batches of a team, or one team's validation.

    Args:
        task: What the steps share.
        moving: What they change, shared.
        validation: Of all networks.
        held: Schedule of the epoch, shared.
        size: Of the crew.
    """

    def __init__(
        self, task: Task, moving: Moving, validation: Validation, held: Schedule, size: int
    ) -> None:
        self.task, self.moving, self.validation, self.held = task, moving, validation, held
        self.size = size
        self._epoch = -1
        self._parts: list[Ints] = []
        self._teams: list[TeamSteps] = []
        self._some: dict[Part, TeamSteps] = {}

    def __call__(self, order: Order) -> Any:  # noqa: ANN401  # rows of numbers, or nothing
        what, *numbers = order
        if what == "validate":
            return self.validation.totals_of(int(numbers[0]), self.moving.parameters).tolist()
        piece = _piece_of(order)
        own = self._steps_of(int(numbers[0]), piece.part)
        for number in range(piece.start, piece.stop):
            own.learn(self._parts[number], self.held.at(number))
        return None

    def teams(self, epoch: int) -> list[TeamSteps]:
        """The teams of an epoch, whose schedule is held."""
        if epoch != self._epoch:
            self._parts = epoch_parts(self.task, epoch)
            running = (self.held.rates > 0).any(0)
            self._teams = team_steps(self.task, self.moving, running, self.size)
            self._epoch, self._some = epoch, {}
        return self._teams

    def _steps_of(self, epoch: int, part: Part) -> TeamSteps:
        """The steps of a part of a team, which may be all of it."""
        own = self.teams(epoch)[part.team]
        if part not in self._some:
            whole = part.last - part.first == own.n_members
            self._some[part] = own if whole else own.part(part.first, part.last)
        return self._some[part]


class _Together:
    """A crew of processes."""

    def __init__(self, crew: Crew, piecework: _Piecework, state: State) -> None:
        self._crew, self._piecework, self._state = crew, piecework, state
        self._stride = _FIRST

    def learn(self, parts: Sequence[Ints], schedule: Schedule) -> Iterator[int]:
        for place, value in zip(self._piecework.held, schedule, strict=True):
            place.copy_(value)
        epoch = self._state.epoch
        teams = self._piecework.teams(epoch)
        while (start := self._state.batch) < len(parts):
            stop, begun = min(start + self._stride, len(parts)), time.perf_counter()
            self._deal(epoch, Dealer(teams, start, stop))
            took = time.perf_counter() - begun
            self._stride = max(int((stop - start) * SECONDS / took), 1)
            yield stop - start

    def _deal(self, epoch: int, dealer: Dealer) -> None:
        """Have all that a dealer has done."""

        def choose(n_free: int) -> Order | None:
            piece = dealer.choose(n_free)
            return None if piece is None else _order_of(epoch, piece)

        run(self._crew, choose, lambda order, _: dealer.note(_piece_of(order)))

    def totals(self) -> list[Tensor]:
        orders: list[Order] = [
            ("validate", n) for n in range(len(self._piecework.validation.teams))
        ]
        return [torch.tensor(own, dtype=torch.float64) for own in run_all(self._crew, orders)]


def _order_of(epoch: int, piece: Piece) -> Order:
    return "learn", epoch, *piece.part, piece.start, piece.stop


def _piece_of(order: Order) -> Piece:
    team, first, last, start, stop = map(int, order[2:])
    return Piece(Part(team, first, last), start, stop)


def share_state(state: State) -> None:
    """Put what steps change where processes share it."""
    for group in (state.parameters, state.first, state.second):
        group.update({name: shared(value) for name, value in group.items()})
    state.tally = shared(state.tally)


def line_up(state: State) -> None:
    """Put what steps change at cache lines, as shared memory has it: products are rounded by it."""
    for group in (state.parameters, state.first, state.second):
        astray = {name: value for name, value in group.items() if value.data_ptr() % LINE_BYTES}
        group.update({name: value.clone() for name, value in astray.items()})


def _blank(n_batches: int, n_networks: int, state: State) -> Schedule:
    """A schedule of an epoch, to be filled in."""
    like = next(iter(state.parameters.values()))
    each, one = like.new_zeros(n_batches, n_networks), like.new_zeros(n_batches)
    return Schedule(each, each, one, one, torch.zeros(n_batches, dtype=torch.long))
