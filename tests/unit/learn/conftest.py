"""Networks of these tests run on one thread; see small_worlds."""

from small_worlds import one_thread

__all__ = ["one_thread"]
