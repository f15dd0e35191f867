"""Whether a build fits into memory, asked before it is half done.

The libraries below do not all survive a failed allocation: some end the process without a word. So
the builder counts its rows first and refuses in one line what it could not finish.
"""

from typing import Final

from etips.errors import ResourceError
from etips.machine import free_memory

BYTES_PER_ROW: Final = 4_000  # of either pass, at the highest point; measured, see the benchmarks


def require_memory(n_rows: int) -> None:
    """Refuse to go on with rows that would not fit.

    Args:
        n_rows: Of both passes together.
    """
    needed, free = n_rows * BYTES_PER_ROW, free_memory()
    if free is not None and needed > free:
        raise ResourceError(
            "cohort",
            f"needs about {needed / 2**30:.1f} GiB of memory for {n_rows:,} rows, "
            f"and {free / 2**30:.1f} GiB are free",
            fix="Use a machine with more.",
        )
