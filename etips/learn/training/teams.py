"""Networks that count the same stays, so that none reads a stay that does not count for it.

Of three folds a network learns from two and is judged on the third. Side by side all would read all
stays, and what a stay adds would be multiplied by zero for the others. Nor need a network read on
that has stopped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import NamedTuple

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

SOONER = 0.95
"""Of the time that fewer parts of teams would take, what more of them may, to be worth the work."""


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
    n_members = len(members_of(team))
    numbers = n_members * team.counts.mean() * size * width
    least = 2 if alone and numbers >= UNIT else 1
    return _cut(team, min(max(int(numbers // UNIT), least), n_members))


def spread(teams: Sequence[Team], n_cores: int, *, size: int, width: int) -> list[Team]:
    """The teams in such parts that so many cores are done soonest.

    Cores share all work evenly, but one part is with one core at a time. More parts are also more
    work: on one core teams stay as they are.

    Args:
        teams: Some teams, at least one.
        n_cores: That learn at the same time.
        size: Stays a batch.
        width: Of the networks' states.
    """
    n_members = [len(members_of(team)) for team in teams]
    each = [(n, _numbers(team, size, width)) for n, team in zip(n_members, teams, strict=True)]

    def parts(cuts: Sequence[int]) -> list[_Part]:
        return [
            _Part(own, one)
            for (n, one), cut in zip(each, cuts, strict=True)
            for own in _sizes(n, cut)
        ]

    cuts = best = [1] * len(teams)
    soonest = SOONER * _time(parts(cuts), n_cores)
    while sum(n * one for n, one in each) > WORTH:  # less is done sooner than it is shared out
        some = zip(each, cuts, strict=True)
        costs = [_Part(-(-n // cut), one).cost for (n, one), cut in some]
        longest = costs.index(max(costs))
        if cuts[longest] == n_members[longest]:
            break
        cuts = [cut + (number == longest) for number, cut in enumerate(cuts)]
        if (time := _time(parts(cuts), n_cores)) < soonest:
            best, soonest = cuts, SOONER * time
    return list(chain(*map(_cut, teams, best)))


class _Part(NamedTuple):
    """Of a team: how many networks, and the numbers in the states of a step of one of them."""

    n_members: int
    a_network: float

    @property
    def cost(self) -> float:
        """Of a step."""
        return WORTH + self.n_members * self.a_network


def _time(parts: Sequence[_Part], n_cores: int) -> float:
    """Of a step of all parts on so many cores, in numbers of states.

    Where every core has one part, and some have a network more, these go on in two when the others
    are done (`dealing`). That is counted for such parts alone: of parts that are less alike a core
    would wait long until the piece at hand is done.
    """
    costs = [own.cost for own in parts]
    first, longest = min(costs), max(parts, key=lambda own: own.cost)
    plain = max(sum(costs) / n_cores, longest.cost)
    n_longer = sum(cost > first for cost in costs)
    alike = longest.cost - first <= longest.a_network
    if len(parts) != n_cores or not alike or n_longer > n_cores - n_longer:
        return plain
    half = longest._replace(n_members=-(-longest.n_members // 2))
    return first + (1 - first / longest.cost) * half.cost


def _sizes(n_members: int, n_parts: int) -> list[int]:
    """Of so many parts of about the same number of networks."""
    edges = [n_members * number // n_parts for number in range(n_parts + 1)]
    return [b - a for a, b in pairwise(edges)]


def cost_of(n_members: int, team: Team, *, size: int, width: int) -> float:
    """What a step of so many of a team costs, in numbers of states; for the others see `spread`."""
    return _Part(n_members, _numbers(team, size, width)).cost


def _numbers(team: Team, size: int, width: int) -> float:
    """In the states of a step of one of a team's networks, of the stays that it reads."""
    return float(team.counts.mean()) * size * width


def part_of_team(team: Team, inside: slice) -> Team:
    """Some networks of a team, by their places in it."""
    return Team(_slice(members_of(team)[inside]), team.counts)


def members_of(team: Team) -> range:
    """Numbers of a team's networks."""
    return range(team.these.start, team.these.stop, team.these.step or 1)


def whole(weight: Tensor) -> Team:
    """All networks as one team."""
    return Team(slice(0, len(weight)), (weight > 0).any(0).cpu().numpy())


def _cut(team: Team, n_parts: int) -> list[Team]:
    """So many parts of about the same number of networks."""
    members = members_of(team)
    edges = accumulate(_sizes(len(members), n_parts), initial=0)
    return [Team(_slice(members[a:b]), team.counts) for a, b in pairwise(edges)]


def _is_even(members: Sequence[int]) -> bool:
    return len(set(np.diff(members))) <= 1


def _slice(members: Sequence[int]) -> slice:
    apart = members[1] - members[0] if len(members) > 1 else 1
    return slice(members[0], members[-1] + 1, apart)
