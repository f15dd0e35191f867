"""Learners of one shape that learn side by side, though each is written as if it were alone.

A search tries learners that differ in rates and decays, and networks of one bundle may differ in
those. So each learner runs in a thread of its own up to where it would train networks, and waits
there. When nobody is left at work, those that wait for the same kind of training train as one
bundle, and each goes on with its own networks. One thread works at a time, in the learners' order,
so the result does not depend on chance.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import replace
from itertools import accumulate, pairwise

import torch
from torch import Tensor

from etips.learn.fitting.requests import FREE, Order
from etips.learn.training.epoch_report import EpochReport, Report
from etips.learn.training.objectives import Objective, Sliced, Weighted, part_of
from etips.learn.training.sharing import carried_over
from etips.models.bundle import Bundle

_HERE: ContextVar["_Seat | None"] = ContextVar("together", default=None)


Train = Callable[[Order, Tensor, Tensor], Bundle]
"""Does an order with a learning rate and a weight decay a network, each of shape (J,)."""


def run_together(works: Sequence[Callable[[], object]]) -> None:
    """Do pieces of work that each fit a learner to the same stays, training side by side.

    The first error, in the order of the works, is raised once all have ended.

    Args:
        works: Each fits one learner; a single one is done as if alone.
    """
    if len(works) == 1:
        works[0]()
        return
    meeting = _Meeting(len(works))
    seats = [_Seat(meeting, number, work) for number, work in enumerate(works)]
    # Daemons, so that an interrupt ends them with the process.
    threads = [threading.Thread(target=carried_over(seat.run), daemon=True) for seat in seats]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seat in seats:
        if seat.error is not None:
            raise seat.error


def is_together() -> bool:
    """Whether this thread's learner is fitted beside others."""
    return _HERE.get() is not None


def ask(order: Order, train: Train) -> Bundle:
    """Have an order done together with the like ones of other learners."""
    seat = _HERE.get()
    assert seat is not None
    return seat.meeting.ask(seat.number, order, train)


class _Seat:
    """One learner at the meeting."""

    def __init__(self, meeting: "_Meeting", number: int, work: Callable[[], object]) -> None:
        self.meeting, self.number, self._work = meeting, number, work
        self.error: BaseException | None = None

    def run(self) -> None:
        _HERE.set(self)
        self.meeting.take_turn(self.number)
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001  # handed to whoever began the meeting
            self.error = error
        finally:
            self.meeting.leave(self.number)


class _Meeting:
    """Passes the turn from learner to learner, and trains when all who are left have asked."""

    def __init__(self, n_learners: int) -> None:
        self._change = threading.Condition()
        self._turn: int | None = 0
        self._ready = set(range(n_learners))  # to work; the others have asked, or left
        self._asked: dict[int, tuple[Order, Train]] = {}
        self._found: dict[int, Bundle | BaseException] = {}

    def take_turn(self, number: int) -> None:
        with self._change:
            self._change.wait_for(lambda: self._turn == number)

    def leave(self, number: int) -> None:
        with self._change:
            self._ready.discard(number)
            self._pass_on()

    def ask(self, number: int, order: Order, train: Train) -> Bundle:
        with self._change:
            self._asked[number] = (order, train)
            self._ready.discard(number)
            self._pass_on()
            self._change.wait_for(lambda: self._turn == number)
            found = self._found.pop(number)
        if isinstance(found, BaseException):
            raise found
        return found

    def _pass_on(self) -> None:
        """Give the turn to the next who can work; if none can, what was asked is done first."""
        if not self._ready and self._asked:
            self._train()
        self._turn = min(self._ready, default=None)
        self._change.notify_all()

    def _train(self) -> None:
        """Do all that was asked, like with like."""
        waiting = sorted(self._asked)
        while waiting:
            first = self._asked[waiting[0]][0]
            group = [number for number in waiting if first.is_like(self._asked[number][0])]
            waiting = [number for number in waiting if number not in group]
            try:
                self._found |= zip(
                    group, _train_group([self._asked[n] for n in group]), strict=True
                )
            except BaseException as error:  # noqa: BLE001  # every one of them is told
                self._found |= dict.fromkeys(group, error)
        self._ready = set(self._asked)
        self._asked = {}


def _train_group(asked: Sequence[tuple[Order, Train]]) -> list[Bundle]:
    """Train the networks of some like orders as one bundle, and give each order its own."""
    orders, train = [order for order, _ in asked], asked[0][1]
    edges = [0, *accumulate(order.bundle.n_members for order in orders)]
    joined = replace(
        orders[0],
        bundle=Bundle.join([order.bundle for order in orders]),
        objective=_join([order.objective for order in orders], edges),
        report=_tell_all([order.report for order in orders]),
    )
    rates, decays = (
        torch.cat([torch.full((o.bundle.n_members,), getattr(o.settings, name)) for o in orders])
        for name in FREE
    )
    device = joined.prepared.steps.device
    found = train(joined, rates.to(device), decays.to(device))
    return [found.select(range(start, stop)) for start, stop in pairwise(edges)]


def _join(objectives: Sequence[Objective], edges: Sequence[int]) -> Objective:
    """The objective of a bundle whose networks come from several."""

    def shares(these: slice) -> Iterator[tuple[Objective, slice]]:
        """Of some networks: whose objective is for which of the outputs."""
        chosen = range(edges[-1])[these]
        for objective, (start, stop) in zip(objectives, pairwise(edges), strict=True):
            own = [place for place, member in enumerate(chosen) if start <= member < stop]
            if own:
                first = chosen[own[0]] - start
                part = slice(first, chosen[own[-1]] - start + 1, chosen.step)
                yield part_of(objective, part), slice(own[0], own[-1] + 1)

    def value(outputs: Tensor, seen: Tensor, these: slice) -> Tensor:
        return torch.cat([own(outputs[rows], seen) for own, rows in shares(these)])

    def weight(outputs: Tensor, seen: Tensor, these: slice) -> Tensor:
        return torch.cat(
            [
                own.weigh(outputs[rows], seen)
                for own, rows in shares(these)
                if isinstance(own, Weighted)
            ]
        )

    weighted = all(isinstance(objective, Weighted) for objective in objectives)
    return Weighted(value, weight) if weighted else Sliced(value)


def _tell_all(reports: Sequence[Report | None]) -> Report | None:
    told = [report for report in reports if report is not None]
    if not told:
        return None

    def report(standing: EpochReport) -> None:
        for each in told:
            each(standing)

    return report
