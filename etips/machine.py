"""The machine's memory that is free, and what a process of ours decides about threads and garbage.

Our steps are small, and threads that wait for each other by spinning take ten times as long as soon
as another process wants one of the cores. A library must not decide that for somebody else's
process; commands and their workers do.
"""

import ctypes
import gc
import os
import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import numpy as np

_THREADS = ("OMP_", "GOMP_", "KMP_", "OPENBLAS_", "MKL_")
_GARBAGE = (100_000, 50, 100)  # torch and scikit-learn make so many objects that looking through
# them as often as usual is a third of the time of a short command

_MEMINFO, _STATUS = Path("/proc/meminfo"), Path("/proc/self/status")
_QUOTAS = (  # of both versions: microseconds of work, and in how many
    (Path("/sys/fs/cgroup/cpu.max"),),
    (
        Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
        Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us"),
    ),
)
_GROUPS = (  # control groups of both versions: folder, limit, use, files that could be dropped
    (Path("/sys/fs/cgroup"), "memory.max", "memory.current", "inactive_file"),
    (
        Path("/sys/fs/cgroup/memory"),
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
)

_LOCK = threading.Lock()
_HOLDERS: list[None] = []  # one for everybody who wants products without threads
_STILL: list[tuple[Callable[[int], None], int]] = []  # libraries, and the threads they had


def own_process() -> None:
    """Set up a command's process before torch is imported: calm threads, garbage rarely looked for.

    Products of numpy's matrices are too small here to gain by a second thread, and its threads
    cannot be told to sleep. Threads that the environment has set up are left alone, and so are
    backends of torch that it names; others are not looked for.
    """
    gc.set_threshold(*_GARBAGE)
    os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    if any(name.startswith(_THREADS) for name in os.environ):
        return
    os.environ["OMP_WAIT_POLICY"] = "passive"
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # for processes that we start
    for _, set_threads in _products():
        set_threads(1)


@contextmanager
def still_products() -> Iterator[None]:
    """NumPy's products of matrices do without threads here; afterwards all is as it was.

    For work in somebody else's process, whose threads are not ours to decide about for long.
    """
    with _LOCK:
        if not _STILL:
            _STILL.extend((set_threads, ask()) for ask, set_threads in _products())
            for set_threads, _ in _STILL:
                set_threads(1)
        _HOLDERS.append(None)
    try:
        yield
    finally:
        with _LOCK:
            _HOLDERS.pop()
            if not _HOLDERS:
                for set_threads, before in _STILL:
                    set_threads(before)
                _STILL.clear()


@cache
def _products() -> tuple[tuple[Callable[[], int], Callable[[int], None]], ...]:
    """How the libraries of NumPy's products are asked for their threads, and given others."""
    products = []
    for file in Path(np.__file__).parent.with_name("numpy.libs").glob("*openblas*"):
        library = ctypes.CDLL(str(file))  # the one that is loaded
        for ending in ("64_", "_64", ""):
            ask = getattr(library, f"scipy_openblas_get_num_threads{ending}", None)
            set_threads = getattr(library, f"scipy_openblas_set_num_threads{ending}", None)
            if ask is not None and set_threads is not None:
                products.append((ask, set_threads))
    return tuple(products)


def cores() -> int:
    """Cores that this process may use: those it is held to, and what its container is granted."""
    held = getattr(os, "sched_getaffinity", None)  # Linux
    n_cores = len(held(0)) if held is not None else os.cpu_count() or 1
    return max(min(n_cores, _granted() or n_cores), 1)


def _granted() -> int | None:
    """Whole cores that a container's time is worth, one more for a part of one."""
    for files in _QUOTAS:
        try:
            quota, period = " ".join((path.read_text()) for path in files).split()
            return max(-(-int(quota) // int(period)), 1) if int(quota) > 0 else None
        except (OSError, ValueError, ZeroDivisionError):  # not there, or a word for no limit
            continue
    return None


def free_memory() -> int | None:
    """Bytes that this process may still take: of the machine, its container and its own limit.

    None where the system shows none of them. Files that the system could drop count as free.
    """
    free = []
    with suppress(OSError, StopIteration):
        free.append(1024 * _count(_MEMINFO, "MemAvailable:"))
    for folder, limit, use, files in _GROUPS:
        with suppress(OSError, ValueError):  # not there, or a word for no limit
            most, used = (int((folder / name).read_text()) for name in (limit, use))
            with suppress(StopIteration):
                used -= _count(folder / "memory.stat", files)
            free.append(most - used)
            break
    limit_of_process, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit_of_process != resource.RLIM_INFINITY:
        with suppress(OSError, StopIteration):
            free.append(limit_of_process - 1024 * _count(_STATUS, "VmSize:"))
    return max(min(free), 0) if free else None


def _count(path: Path, name: str) -> int:
    """The number that follows a name in a file of such lines."""
    lines = (line.split() for line in path.read_text().splitlines())
    return next(int(words[1]) for words in lines if words[:1] == [name])
