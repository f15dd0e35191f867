"""What a fit costs: seconds, processor seconds, peak memory."""

import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_STATUS, _REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_PEAK = "VmHWM:"
_FORGET_PEAK = "5"  # see proc(5)
_MB = 2**20


@dataclass
class Cost:
    """What some work cost.

    Args:
        seconds: By the clock.
        processor: Of all cores, processes started for it and ended since included.
        memory: Most megabytes that this process held at a time, data and packages included; None
            where the system does not tell.
    """

    seconds: float = 0.0
    processor: float = 0.0
    memory: float | None = None


@contextmanager
def measured() -> Iterator[Cost]:
    """A `Cost` that is filled in when the block ends."""
    cost, resets = Cost(), _forget_peak()
    started, used = time.perf_counter(), _processor()
    try:
        yield cost
    finally:
        cost.seconds = time.perf_counter() - started
        cost.processor = _processor() - used
        cost.memory = _peak() if resets else _peak_ever()


def _processor() -> float:
    each = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(own.ru_utime + own.ru_stime for own in each)


def _forget_peak() -> bool:
    """Have the system count the peak from here on; False where it cannot."""
    try:
        _REFS.write_text(_FORGET_PEAK)
    except OSError:
        return False
    return _peak() is not None


def _peak() -> float | None:
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return None
    found = (line.split() for line in lines if line.startswith(_PEAK))
    return next((1024 * int(words[1]) / _MB for words in found), None)


def _peak_ever() -> float:
    """Since the process began: all that other systems tell."""
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _MB
