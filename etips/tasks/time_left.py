"""How far some tasks are, or a whole study, and how long the rest may take."""

import math
import time

from etips.progress import Progress, duration

_NAMED = 3  # tasks at work that progress names; more are counted
_SOON = 20.0  # seconds after which the pace of a study is worth something
_TRUSTED = 0.4  # share of a study after which its pace alone tells how long the rest takes


class TaskProgress:
    """Tells which share of some tasks is done, what is at work, and how long it may take.

    Args:
        total: Cost of all tasks.
        report: Whom to tell.
    """

    def __init__(self, total: float, report: Progress | None) -> None:
        self.hands = 1
        self._total, self._report = total, report
        self._cost = self._seconds = 0.0
        self._at_work: list[str] = []

    def done_before(self, cost: float, seconds: float) -> None:
        """A task was done earlier, and took so long."""
        self._cost += cost
        self._seconds += seconds

    def began(self, name: str) -> None:
        """A task was taken up."""
        self._at_work = [*(n for n in self._at_work if n != name), name]  # again, if one was lost
        self._tell()

    def done(self, name: str, cost: float, seconds: float) -> None:
        """A task is done, and took so long."""
        self._at_work = [n for n in self._at_work if n != name]
        self.done_before(cost, seconds)
        self._tell()

    def _tell(self) -> None:
        if self._report is None:
            return
        at_work, left = self._at_work, self._total - self._cost
        what = ", ".join(at_work[:_NAMED])
        if len(at_work) > _NAMED:
            what += f" and {len(at_work) - _NAMED} more"
        if self._cost and left > 1e-9 * self._total:
            rounds = math.ceil(left / self.hands)
            what += f"; about {duration(rounds * self._seconds / self._cost)} left"
        self._report(what.removeprefix("; "), min(self._cost / self._total, 1.0))


class StudyProgress:
    """Tells which share of a study is done and how long the rest may take, by what tasks cost.

    What was expected before the first task counts less and less as tasks are done.

    Args:
        report: Whom to tell.
    """

    def __init__(self, report: Progress) -> None:
        self._report = report
        self._start: tuple[float, float] | None = None
        self._end: float | None = None

    def expect(self, seconds: float) -> None:
        """The rest is expected to take so long from now."""
        self._end = time.perf_counter() + seconds

    def between(self, low: float, high: float) -> Progress:
        """A report for the tasks between two shares of the whole."""

        def tell(what: str, share: float) -> None:
            now, done = time.perf_counter(), low + (high - low) * share
            # The tasks' own guess, behind what is at work or alone, knows this wave only.
            text = "" if what.startswith("about ") else what.partition(";")[0]
            left = self._left(now, done)
            if left is not None and done < 1:
                text += f"; about {duration(max(left, 10))} left"
            self._report(text.removeprefix("; "), done)

        return tell

    def _left(self, now: float, done: float) -> float | None:
        """Seconds that the rest takes: as expected, or at the pace so far."""
        began, first = self._start = self._start or (now, done)  # some may be done already
        expected = None if self._end is None else max(self._end - now, 0.0)
        if done <= first or (expected is None and now - began <= _SOON):
            return expected
        pace = (now - began) * (1 - done) / (done - first)
        if expected is None:
            return pace
        trust = min((done - first) / (_TRUSTED * (1 - first)), 1.0)
        return trust * pace + (1 - trust) * expected
