"""Memory that is freed stays with the process.

Training takes and frees the same large arrays at every step. Left to itself the C library hands
them back to the system each time, and the system clears every page of them when they are taken
again: a tenth of the time of a training on a CPU. The processes that are ours alone, commands
that train and their workers, keep them. A library must not decide that for somebody else's.
"""

import ctypes
import os

_TRIM, _MMAP, _ARENAS = -1, -3, -8  # as glibc's malloc.h numbers them
_MOST = 2**31 - 1
_LARGE = (2**30, 2**25)  # older versions of glibc take no more than the second
_ENVIRONMENT = ("MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD")


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
