"""Networks that count the same stays, so that none reads a stay that does not count for it.

Of three folds a network learns from two and is judged on the third. Side by side all would read all
stays, and what a stay adds would be multiplied by zero for the others. Nor need a network read on
that has stopped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from etips.models.encoders.last_step import LastStep
from etips.models.network import Network

WORTH = 5000
"""Numbers in the states of a step that one more team must save; less costs more than it saves."""

UNIT = 2**15
"""Numbers in the states of a step that keep a core busy; teams of more are cut, for more cores."""

LIGHT = 16
"""Numbers in a state without memory that cost as much as one of a recurrent layer."""

LIGHT_UNIT = 4
"""The same where a team is cut: a unit reads a batch of rows without a past in no time."""


@dataclass(frozen=True, eq=False)
class Team:
    """Some networks of a bundle.

    Args:
        these: Which.
        counts: Whether a stay counts for any of them, shape (n_stays,).
    """

    these: slice
    counts: NDArray[np.bool_]


def width_of(network: Network, light: int = LIGHT) -> int:
    """Numbers in a state, as far as they cost what those of a recurrent layer do.

    Args:
        network: Shape of the networks.
        light: How many of a state without memory cost as much as one.
    """
    width = network.encoder.size(network.n_features)
    return max(width // light, 1) if isinstance(network.encoder, LastStep) else width


def teams_of(weight: Tensor, *, size: int, width: int) -> list[Team]:
    """Teams such that what counts for one network of a team counts for all.

    Networks are picked by slices, so that a team works in the memory of the whole. Where the
    members of a team do not lie at one distance from each other, or where it is not worth the
    while, all networks are one team.

    Args:
        weight: How much each stay counts for each network, shape (J, n_stays).
        size: Stays a batch.
        width: Of the networks' states.
    """
    counts = (weight > 0).cpu().numpy()
    members: dict[bytes, list[int]] = {}
    for number, row in enumerate(counts):
        members.setdefault(np.packbits(row).tobytes(), []).append(number)
    all_as_one, alike = whole(weight), list(members.values())
    saved = len(weight) * all_as_one.counts.mean() - counts.mean(1).sum()  # in networks
    if not all(map(_is_even, alike)) or saved * size * width < WORTH * (len(alike) - 1):
        return [all_as_one]
    return [Team(_slice(team), counts[team[0]]) for team in alike]


def learning(team: Team, running: NDArray[np.bool_], *, size: int, width: int) -> list[Team]:
    """The team without the networks that have stopped, as neighbours that still learn.

    Where leaving them out is not worth the while, the team as it is.

    Args:
        team: Some networks.
        running: Whether each network of the bundle still learns, shape (J,).
        size: Stays a batch.
        width: Of the networks' states.
    """
    members = np.arange(len(running))[team.these]
    inside = np.concatenate([[False], running[members], [False]])
    edges = np.flatnonzero(inside[1:] != inside[:-1])
    parts = [members[start:stop].tolist() for start, stop in edges.reshape(-1, 2)]
    saved = (len(members) - running[members].sum()) * team.counts.mean()  # in networks
    if parts and saved * size * width < WORTH * (len(parts) - 1):
        return [team]
    return [Team(_slice(part), team.counts) for part in parts]


def units_of(team: Team, *, size: int, width: int, alone: bool = False) -> list[Team]:
    """The team in parts that may learn at the same time, each with enough to do.

    Args:
        team: Some networks.
        size: Stays a batch.
        width: Of the networks' states.
        alone: Whether there is no other team; then one that keeps a core busy is cut in two, lest
            a second core have nothing to do.
    """
    members = range(team.these.start, team.these.stop, team.these.step or 1)
    numbers = len(members) * team.counts.mean() * size * width
    least = 2 if alone and numbers >= UNIT else 1
    n_units = min(max(int(numbers // UNIT), least), len(members))
    edges = [len(members) * number // n_units for number in range(n_units + 1)]
    return [Team(_slice(members[a:b]), team.counts) for a, b in pairwise(edges)]


def whole(weight: Tensor) -> Team:
    """All networks as one team."""
    return Team(slice(0, len(weight)), (weight > 0).any(0).cpu().numpy())


def _is_even(members: Sequence[int]) -> bool:
    return len(set(np.diff(members))) <= 1


def _slice(members: Sequence[int]) -> slice:
    apart = members[1] - members[0] if len(members) > 1 else 1
    return slice(members[0], members[-1] + 1, apart)
