"""Whether a build fits into memory, asked before it is half done.

The libraries below do not all survive a failed allocation: some end the process without a word. So
the builder counts its rows first and refuses in one line what it could not finish.
"""

import resource
from pathlib import Path
from typing import Final

from etips.errors import ResourceError

BYTES_PER_ROW: Final = 4_000  # of either pass, at the highest point; measured, see the benchmarks
_MEMINFO, _STATUS = Path("/proc/meminfo"), Path("/proc/self/status")
_GROUP: Final = Path("/sys/fs/cgroup")


def require_memory(n_rows: int) -> None:
    """Refuse to go on with four-hour rows that would not fit.

    Args:
        n_rows: Of both passes together.
    """
    needed, free = n_rows * BYTES_PER_ROW, free_bytes()
    if free is not None and needed > free:
        raise ResourceError(
            "cohort",
            f"needs about {needed / 2**30:.1f} GiB of memory for {n_rows:,} four-hour rows, "
            f"and {max(free, 0) / 2**30:.1f} GiB are free",
            fix="Use a machine with more.",
        )


def free_bytes() -> int | None:
    """Memory this process may still take: the machine's, its group's and its own limit."""
    found = [free for free in (_of_machine(), _of_group(), _of_process()) if free is not None]
    return min(found, default=None)


def _of_machine() -> int | None:
    return _kilobytes(_MEMINFO, "MemAvailable:")


def _of_group() -> int | None:
    """What a container leaves; files that the system could drop count as free."""
    try:
        limit = (_GROUP / "memory.max").read_text().strip()
        used = int((_GROUP / "memory.current").read_text())
        idle = _count(_GROUP / "memory.stat", "inactive_file")
    except (OSError, ValueError):
        return None
    return None if limit == "max" else int(limit) - used + idle


def _of_process() -> int | None:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    used = _kilobytes(_STATUS, "VmSize:")
    return None if limit == resource.RLIM_INFINITY or used is None else limit - used


def _kilobytes(path: Path, name: str) -> int | None:
    try:
        return 1024 * _count(path, name)
    except (OSError, ValueError):
        return None


def _count(path: Path, name: str) -> int:
    """The number that follows a name in a file of such lines."""
    for line in path.read_text().splitlines():
        words = line.split()
        if words and words[0] == name:
            return int(words[1])
    raise ValueError(name)
