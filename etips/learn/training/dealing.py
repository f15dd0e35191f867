"""Pieces of an epoch, dealt out to whoever is free.

A team goes through its batches by itself, some batches a piece. Where more are free than there are
teams that nobody works on, a team goes on in two parts: five networks on two cores are three and
two, and whoever had the two would wait for the other.
"""

from collections.abc import Sequence
from typing import NamedTuple

from etips.learn.training.learning_step import TeamSteps

PIECES = 4
"""Of what a team has left until the next moment at which all teams have come equally far. So pieces
become small towards it, and nobody waits long for the last."""


class Part(NamedTuple):
    """Some networks of a team: its number, and which of its members, from one to before another."""

    team: int
    first: int
    last: int


class Piece(NamedTuple):
    """What one does next: some networks of a team, from one batch to before another."""

    part: Part
    start: int
    stop: int


class Dealer:
    """Who does what until all teams have come equally far.

    Args:
        teams: Of the epoch.
        start: First batch.
        stop: One past the last.
    """

    def __init__(self, teams: Sequence[TeamSteps], start: int, stop: int) -> None:
        self._teams, self._stop = teams, stop
        whole = (Part(n, 0, own.n_members) for n, own in enumerate(teams))
        self._at = dict.fromkeys(whole, start)  # of those that nobody works on

    def choose(self, n_free: int) -> Piece | None:
        """The next piece for one of so many who are free; None if there is none at the moment."""
        left = {part: self._left(part) for part, at in self._at.items() if at < self._stop}
        if not left:
            return None
        part = max(left, key=left.__getitem__)
        start = self._at.pop(part)
        if n_free > len(left) and self._teams[part.team].divisible and part.last - part.first > 1:
            middle = (part.first + part.last + 1) // 2
            self._at[part._replace(first=middle)] = start
            part = part._replace(last=middle)
        return Piece(part, start, start - (start - self._stop) // PIECES)

    def note(self, piece: Piece) -> None:
        """A piece is done."""
        self._at[piece.part] = piece.stop

    def _left(self, part: Part) -> float:
        n_batches = self._stop - self._at[part]
        return n_batches * self._teams[part.team].cost_of(part.last - part.first)
