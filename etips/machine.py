"""The machine's memory and cores: what is free, what is kept, and how threads wait for each other.

Training takes and frees the same large arrays at every step. Left to itself the C library hands
them back to the system each time, and the system clears every page of them when they are taken
again: a tenth of the time of a training on a CPU. The processes that are ours alone, commands
that train and their workers, keep them. A library must not decide that for somebody else's.

The same holds for threads. Our steps are small, and threads that wait for each other by spinning
take ten times as long as soon as another process wants one of the cores. And for Python's search
for garbage, which looks through all that was imported.
"""

import ctypes
import gc
import os
import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np

_TRIM, _MMAP, _ARENAS = -1, -3, -8  # as glibc's malloc.h numbers them
_MOST = 2**31 - 1
_LARGE = (2**30, 2**25)  # older versions of glibc take no more than the second
_ENVIRONMENT = ("MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD")
_THREADS = ("OMP_", "GOMP_", "KMP_", "OPENBLAS_", "MKL_")

_MEMINFO, _STATUS = Path("/proc/meminfo"), Path("/proc/self/status")
_GROUPS = (  # control groups of both versions: folder, limit, use, files that could be dropped
    (Path("/sys/fs/cgroup"), "memory.max", "memory.current", "inactive_file"),
    (
        Path("/sys/fs/cgroup/memory"),
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
)

_QUOTAS = (  # of both versions: microseconds of work, and in how many
    (Path("/sys/fs/cgroup/cpu.max"),),
    (
        Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
        Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us"),
    ),
)

_OURS: list[None] = []  # something in it: this process is ours alone
_LOCK = threading.Lock()
_HOLDERS: list[None] = []  # one for everybody who wants products without threads
_STILL: list[tuple[Callable[[int], None], int]] = []  # libraries, and the threads they had


def own_process() -> None:
    """Let `importing` do its work from here on: this process is a command's, or its helper's."""
    _OURS.append(None)


@contextmanager
def importing() -> Iterator[None]:
    """Import torch or scikit-learn within, without Python looking for garbage among what they make.

    They make so many objects that looking through them again and again is a tenth of the import,
    and a last time at the end of the process 0.4 s; modules stay to the end anyway. Backends of
    torch that nobody can ask for here are not looked for either. See `own_process`.
    """
    if not _OURS:
        yield
        return
    os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collects:
            gc.enable()


def keep_freed() -> bool:
    """Keep freed memory from here on; tell whether the C library knows how.

    Call it before there are threads: they share one arena then, so that a backward pass finds what
    a forward pass has freed. Whoever has set up the allocation otherwise is left alone.
    """
    if any(name.startswith(_ENVIRONMENT) for name in os.environ):
        return False
    try:
        tell = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # musl, macOS, Windows
        return False
    arenas, trim = tell(_ARENAS, 1), tell(_TRIM, _MOST)
    return bool(arenas and trim and any(tell(_MMAP, size) for size in _LARGE))


def share_cores() -> None:
    """Let threads sleep while they wait, from here on; before torch is imported.

    Products of numpy's matrices are too small here to gain by a second thread, and its threads
    cannot be told to sleep. Whoever has set up threads in the environment is left alone.
    """
    if any(name.startswith(_THREADS) for name in os.environ):
        return
    os.environ["OMP_WAIT_POLICY"] = "passive"
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # for processes that we start
    for _, tell in _products():
        tell(1)


@contextmanager
def still_products() -> Iterator[None]:
    """NumPy's products of matrices do without threads here; afterwards all is as it was.

    For work in somebody else's process, whose threads are not ours to decide about for long.
    """
    with _LOCK:
        if not _STILL:
            _STILL.extend((tell, ask()) for ask, tell in _products())
            for tell, _ in _STILL:
                tell(1)
        _HOLDERS.append(None)
    try:
        yield
    finally:
        with _LOCK:
            _HOLDERS.pop()
            if not _HOLDERS:
                for tell, before in _STILL:
                    tell(before)
                _STILL.clear()


@cache
def _products() -> tuple[tuple[Callable[[], int], Callable[[int], None]], ...]:
    """How to ask the libraries of NumPy's products for their threads, and how to tell them."""
    found = []
    for file in Path(np.__file__).parent.with_name("numpy.libs").glob("*openblas*"):
        library = ctypes.CDLL(str(file))  # the one that is loaded
        for ending in ("64_", "_64", ""):
            ask = getattr(library, f"scipy_openblas_get_num_threads{ending}", None)
            tell = getattr(library, f"scipy_openblas_set_num_threads{ending}", None)
            if ask is not None and tell is not None:
                found.append((ask, tell))
    return tuple(found)


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

    None where the system tells none of them.
    """
    known = [_of_machine(), _of_container(), _of_process()]
    return min((max(free, 0) for free in known if free is not None), default=None)


def _of_machine() -> int | None:
    return _kilobytes(_MEMINFO, "MemAvailable:")


def _of_container() -> int | None:
    """What is left of a container's limit; files that the system could drop count as free."""
    for folder, limit, use, files in _GROUPS:
        try:
            most, used = (int((folder / name).read_text()) for name in (limit, use))
            return most - used + (_count(folder / "memory.stat", files) or 0)
        except (OSError, ValueError):  # not there, or a word for no limit
            continue
    return None


def _of_process() -> int | None:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    used = _kilobytes(_STATUS, "VmSize:")
    return None if limit == resource.RLIM_INFINITY or used is None else limit - used


def _kilobytes(path: Path, name: str) -> int | None:
    try:
        count = _count(path, name)
    except (OSError, ValueError):
        return None
    return None if count is None else 1024 * count


def _count(path: Path, name: str) -> int | None:
    """The number that follows a name in a file of such lines, None if there is no such line."""
    for line in path.read_text().splitlines():
        words = line.split()
        if words and words[0] == name:
            return int(words[1])
    return None
