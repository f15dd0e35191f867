"""How long work tells somebody how far it is."""

from collections.abc import Callable

Progress = Callable[[str, float], None]
"""Told what is being done and which share of it is behind, 0..1."""


def duration(seconds: float) -> str:
    """A time to wait, in the unit that suits it."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 1):.0f} s"


def no_progress(what: str, share: float) -> None:
    """Tell nobody."""
