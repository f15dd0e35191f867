"""Few people: counts of one to ten are never shown (goal P2)."""

LEAST_PEOPLE = 11
"""Fewest people that a shown count may stand for; none at all may be shown too."""


def are_few(count: float) -> bool:
    """Whether a count of people, or what may be near one, must not be shown."""
    return 0 < count < LEAST_PEOPLE
