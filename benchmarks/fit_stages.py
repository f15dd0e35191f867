"""What each stage of `etips fit` takes: wall and processor seconds, and the most memory so far.

    python -m benchmarks.fit_stages log.parquet --stay stay --step step --action drug --loss died

Takes the options of `etips fit` but for --out. A stage that trains is called by its name; what
follows it (asking the networks, calibration, choosing) is `after` it.
"""

import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Stopwatch:
    """Seconds and memory by stage, in the order in which they first came.

    Args:
        used: Seconds of the processor so far; those of this process alone if left out.
    """

    used: Callable[[], float] = time.process_time
    wall: dict[str, float] = field(default_factory=dict)
    processor: dict[str, float] = field(default_factory=dict)
    peak: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def during(self, stage: str) -> Iterator[None]:
        """Count what happens within."""
        wall, processor = time.perf_counter(), self.used()
        yield
        self.wall[stage] = self.wall.get(stage, 0.0) + time.perf_counter() - wall
        self.processor[stage] = self.processor.get(stage, 0.0) + self.used() - processor
        self.peak[stage] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    def of(self, stage: str) -> tuple[float, float]:
        """Wall and processor seconds of a stage, of all of them if it is "together"."""
        if stage == "together":
            return sum(self.wall.values()), sum(self.processor.values())
        return self.wall.get(stage, 0.0), self.processor.get(stage, 0.0)

    def show(self) -> None:
        """Print a line a stage."""
        total = sum(self.processor.values())
        print(f"  {'stage':24}{'wall s':>9}{'CPU s':>9}{'share':>8}{'peak MiB':>10}")
        for stage, seconds in self.processor.items():
            share, wall, peak = f"{seconds / total:.0%}", self.wall[stage], self.peak[stage]
            print(f"  {stage:24}{wall:9.2f}{seconds:9.2f}{share:>8}{peak:10.0f}")
        print(f"  {'together':24}{sum(self.wall.values()):9.2f}{total:9.2f}")


@contextmanager
def watched(watch: Stopwatch) -> Iterator[None]:
    """Have every learner's work counted, request by request."""
    from etips.learn.learners.learner import Learner

    whole = Learner._fitting

    def counted(learner, stays):
        inner, stage, bundle = whole(learner, stays), "getting ready", None
        while True:
            with watch.during(stage):
                try:
                    request = next(inner) if bundle is None else inner.send(bundle)
                except StopIteration as end:
                    return end.value
            stage = f"after {request.stage}"
            with watch.during(request.stage):
                bundle = yield request

    Learner._fitting = counted
    try:
        yield
    finally:
        Learner._fitting = whole


def main() -> None:
    """Run the command and print where its time went."""
    from etips.cli import main as command

    command.own_process()  # before torch is imported, as the command does
    clock = Stopwatch()
    with clock.during("imports"):
        from etips.cli import fitting
    fit_run = fitting.fit_run

    def timed(*positional, **named):
        began = time.perf_counter(), time.process_time()
        clock.wall["reading"] += began[0] - started[0]
        clock.processor["reading"] += began[1] - started[1]
        before = [sum(own.values()) for own in (clock.wall, clock.processor)]
        fitted = fit_run(*positional, **named)
        after = [sum(own.values()) for own in (clock.wall, clock.processor)]
        left = time.perf_counter() - began[0], time.process_time() - began[1]
        clock.wall["marks and writing"] = left[0] - (after[0] - before[0])
        clock.processor["marks and writing"] = left[1] - (after[1] - before[1])
        clock.peak["marks and writing"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return fitted

    fitting.fit_run = timed
    clock.wall["reading"] = clock.processor["reading"] = 0.0
    clock.peak["reading"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    started = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory() as place, watched(clock):
        sys.argv = ["etips", "fit", *sys.argv[1:], "--out", str(Path(place) / "run")]
        try:
            command.main()
        except SystemExit as end:
            if end.code:
                raise
    clock.show()


if __name__ == "__main__":
    main()
