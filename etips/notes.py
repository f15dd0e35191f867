"""Remarks that are no refusals: what was done to a table, told once and never about a patient."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

_LOGGER = logging.getLogger("etips")
_COLLECTORS: list[list[str]] = []  # the innermost collector last


def note(text: str) -> None:
    """Log a remark at level INFO and leave it with whoever collects.

    A remark that the collector has already is not repeated: a table may be looked at twice.
    """
    line = "".join(c if c.isprintable() else " " for c in text).strip()
    _LOGGER.info("%s", line)
    if _COLLECTORS and line not in _COLLECTORS[-1]:
        _COLLECTORS[-1].append(line)


@contextmanager
def collecting_notes() -> Iterator[list[str]]:
    """The remarks made inside, in their order; an inner collector keeps its own."""
    notes: list[str] = []
    _COLLECTORS.append(notes)
    try:
        yield notes
    finally:
        _COLLECTORS[:] = [other for other in _COLLECTORS if other is not notes]
