"""What a search may give to a setting: some values, or a range."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Choice:
    """One of some values; of one, it is fixed.

    Args:
        values: At least one, none twice.
    """

    values: tuple[object, ...]


@dataclass(frozen=True)
class Range:
    """Any value between two ends, both of them possible.

    Args:
        low: The least.
        high: The most.
        log: Whether 1 to 10 is as far as 10 to 100.
        whole: Whether whole numbers only.
    """

    low: float
    high: float
    log: bool = False
    whole: bool = False


Space = Mapping[str, Choice | Range]
"""By key of `recipes`; what a space does not name has the learner's default."""
