"""Pieces of an epoch: dealt to who has most left, and teams in parts where somebody would wait."""

from itertools import pairwise

import pytest

from etips.learn.training.dealing import Dealer, Part, Piece


class Networks:
    """Stands in for a team: so many networks, each as dear as another, beside what a step costs."""

    def __init__(self, n_members, *, cost=1.0, divisible=True):
        self.n_members, self.divisible, self._cost = n_members, divisible, cost

    def cost_of(self, n_members):
        return 1.0 + self._cost * n_members


def test_pieces_are_dealt_to_the_team_with_most_left_and_never_twice_at_once():
    dealer = Dealer([Networks(1), Networks(3)], 10, 18)
    first, second = dealer.choose(2), dealer.choose(1)
    assert (first, second) == (Piece(Part(1, 0, 3), 10, 12), Piece(Part(0, 0, 1), 10, 12))
    assert dealer.choose(1) is None  # both teams are at work
    dealer.note(first)
    assert dealer.choose(1) == Piece(Part(1, 0, 3), 12, 14)


def test_pieces_become_small_towards_the_end_and_no_batch_is_left_out():
    dealer, dealt = Dealer([Networks(2)], 3, 40), []
    while (piece := dealer.choose(1)) is not None:
        dealt.append((piece.start, piece.stop))
        dealer.note(piece)
    lengths = [stop - start for start, stop in dealt]
    assert lengths == sorted(lengths, reverse=True)
    assert (dealt[0], dealt[-1]) == ((3, 13), (39, 40))
    assert all(stop == start for (_, stop), (start, _) in pairwise(dealt))


def test_a_team_goes_on_in_two_parts_where_somebody_would_have_nothing_to_do():
    dealer = Dealer([Networks(3), Networks(2)], 0, 8)
    three, two = dealer.choose(2), dealer.choose(1)
    dealer.note(two._replace(stop=8))  # done, while the others have just begun
    assert dealer.choose(1) is None
    dealer.note(three)
    assert dealer.choose(2) == Piece(Part(0, 0, 2), 2, 4)
    assert dealer.choose(1) == Piece(Part(0, 2, 3), 2, 4)


@pytest.mark.parametrize("team", [Networks(3, divisible=False), Networks(1)])
def test_what_cannot_be_parted_stays_together(team):
    dealer = Dealer([team], 0, 8)
    assert dealer.choose(5) == Piece(Part(0, 0, team.n_members), 0, 2)
    assert dealer.choose(4) is None


@pytest.mark.parametrize("n_workers", [1, 2, 3, 16])
def test_every_network_meets_every_batch_once_and_in_order(n_workers):
    dealer, met = Dealer([Networks(3), Networks(2), Networks(4, divisible=False)], 5, 29), {}
    busy, clock = [], 0.0
    while True:
        free = n_workers - len(busy)
        while free and (piece := dealer.choose(free)) is not None:
            size = piece.part.last - piece.part.first
            busy.append((clock + (piece.stop - piece.start) * (1.0 + size), piece))
            free -= 1
        if not busy:
            break
        clock, piece = busy.pop(busy.index(min(busy)))
        dealer.note(piece)
        for member in range(piece.part.first, piece.part.last):
            batches = met.setdefault((piece.part.team, member), [])
            batches += range(piece.start, piece.stop)
    assert set(met) == {(team, n) for team, size in enumerate((3, 2, 4)) for n in range(size)}
    assert all(batches == list(range(5, 29)) for batches in met.values())
