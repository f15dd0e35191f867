"""How long work tells somebody how far it is."""

from collections.abc import Callable

Progress = Callable[[str, float], None]
"""Told what is being done and which share of it is behind, 0..1."""


def no_progress(what: str, share: float) -> None:
    """Tell nobody."""
