"""Networks that count the same stays."""

from itertools import chain

import numpy as np
import pytest
import torch

from etips.learn.training.teams import (
    LIGHT,
    UNIT,
    WORTH,
    Team,
    cost_of,
    learning,
    part_of_team,
    spread,
    teams_of,
    units_of,
    whole,
    width_of,
)
from etips.models.encoders.gru import GRU
from etips.models.encoders.last_step import LastStep
from etips.models.network import Network

FOLD = np.array([0, 1, 2, 2, 1, 0])
LARGE = {"size": WORTH, "width": 64}


def weights(*rows):
    return torch.from_numpy(np.stack(rows).astype(np.float32))


def picked(teams, n_networks):
    return [list(range(n_networks))[team.these] for team in teams]


def test_sets_of_folds_divide_by_fold():
    found = teams_of(weights(*[k != FOLD for k in (0, 1, 2)] * 3), **LARGE)
    assert picked(found, 9) == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    for fold, team in enumerate(found):
        assert team.counts.tolist() == (fold != FOLD).tolist()


def test_how_much_a_stay_counts_does_not_matter_only_whether_it_does():
    assert len(teams_of(weights(FOLD + 1, FOLD + 2, np.ones(6)), **LARGE)) == 1


def test_a_network_that_counts_nothing_is_a_team_of_its_own():
    found = teams_of(weights(FOLD == 0, np.zeros(6), FOLD == 0), **LARGE)
    assert picked(found, 3) == [[0, 2], [1]]
    assert not found[1].counts.any()


@pytest.mark.parametrize(
    ("rows", "size"),
    [
        ([FOLD == 0, FOLD == 0, FOLD == 1, FOLD == 0], WORTH),  # members 0, 1, 3
        ([FOLD != 0, FOLD != 1, FOLD != 2], 3),
    ],
    ids=["not at one distance", "too small"],
)
def test_otherwise_all_are_one_team_of_the_stays_that_count_for_any(rows, size):
    (team,) = teams_of(weights(*rows), size=size, width=64)
    assert picked([team], len(rows)) == [list(range(len(rows)))]
    assert team.counts.tolist() == np.any(rows, axis=0).tolist()
    assert team.counts.tolist() == whole(weights(*rows)).counts.tolist()


def left(these, running, size=WORTH):
    team = Team(these, np.ones(6, bool))
    found = learning(team, np.array(running, bool), size=size, width=64)
    assert all(part.counts is team.counts for part in found)
    return picked(found, len(running))


def test_who_has_stopped_is_left_out():
    assert left(slice(0, 6), [0, 0, 1, 1, 1, 0]) == [[2, 3, 4]]
    assert left(slice(0, 6), [0, 1, 1, 0, 1, 1]) == [[1, 2], [4, 5]]
    assert left(slice(1, 9, 3), [1, 0, 1, 1, 1, 1, 1, 1, 1]) == [[4, 7]]
    assert left(slice(0, 3), [1, 1, 1]) == [[0, 1, 2]]


def test_a_team_that_has_stopped_is_gone():
    assert left(slice(0, 3), [0, 0, 0]) == []
    assert left(slice(0, 6, 3), [0, 1, 1, 0, 1, 1]) == []


def test_small_networks_are_not_torn_apart_to_leave_one_out():
    assert left(slice(0, 5), [1, 1, 0, 1, 1], size=1) == [[0, 1, 2, 3, 4]]
    assert left(slice(0, 5), [0, 1, 1, 1, 1], size=1) == [[1, 2, 3, 4]]


def test_states_without_memory_are_light():
    """So that a few networks that read single rows stay one team, whose step is one call."""
    assert width_of(Network(GRU(48), 3, 0, 2)) == 48
    assert width_of(Network(LastStep(64), 3, 0, 2)) == 64 // LIGHT
    assert width_of(Network(LastStep(2), 3, 0, 2)) == 1


@pytest.mark.parametrize(
    ("units", "sizes"), [(0.5, [9]), (1, [9]), (3.4, [3, 3, 3]), (20, [1] * 9)]
)
def test_a_large_team_is_cut_evenly_for_more_cores_and_a_small_one_is_not(units, sizes):
    team = Team(slice(2, 45, 5), np.array([True, False]))  # half of the stays count
    found = units_of(team, size=round(2 * units * UNIT / 9 / 64) + 1, width=64)
    assert [len(members) for members in picked(found, 45)] == sizes
    assert list(chain(*picked(found, 45))) == picked([team], 45)[0]
    assert all(own.counts is team.counts for own in found)


def test_states_without_memory_cost_less_and_less_where_a_batch_must_be_read_again():
    network = Network(LastStep(32), 4, 0, 2)
    assert (width_of(network, 4), width_of(network)) == (8, 2)
    assert width_of(Network(GRU(32), 4, 0, 2), 4) == 32


def test_a_team_that_is_alone_and_keeps_a_core_busy_is_cut_in_two():
    team = whole(torch.ones(5, 10))
    busy, idle = {"size": 128, "width": 64}, {"size": 64, "width": 64}
    assert [len(range(5)[own.these]) for own in units_of(team, **busy)] == [5]
    assert [len(range(5)[own.these]) for own in units_of(team, **busy, alone=True)] == [2, 3]
    assert [len(range(5)[own.these]) for own in units_of(team, **idle, alone=True)] == [5]


def sizes(teams):
    return [len(range(100)[team.these]) for team in teams]


def shared_out(teams, n_cores, numbers):
    """Parts, where a network's states have so many numbers in a step."""
    return sizes(spread(teams, n_cores, size=numbers, width=1))


def test_more_cores_have_smaller_teams_and_one_core_has_them_whole():
    team = whole(torch.ones(5, 10))
    assert shared_out([team], 1, 2 * WORTH) == [5]
    assert shared_out([team], 2, 2 * WORTH) == [2, 3]
    assert shared_out([team], 4, 2 * WORTH) == [1] * 5
    assert shared_out([team], 16, 2 * WORTH) == [1] * 5


def test_what_would_hardly_be_sooner_is_not_cut():
    assert shared_out([whole(torch.ones(5, 10))], 16, WORTH // 20) == [5]


def test_teams_that_cores_share_evenly_are_not_cut_and_the_largest_is_cut_first():
    folds = [Team(slice(k, 10, 5), np.ones(10, bool)) for k in range(5)]
    assert shared_out(folds, 2, 4 * WORTH) == [2] * 5
    assert shared_out(folds, 10, 4 * WORTH) == [1] * 10
    large = [Team(slice(0, 6), np.ones(10, bool)), Team(slice(6, 7), np.ones(10, bool))]
    assert shared_out(large, 2, 4 * WORTH) == [3, 3, 1]


def test_a_network_more_than_others_have_need_not_be_a_part_of_its_own():
    """Who has one less takes over a half on the way, but not where more have one more."""
    team = whole(torch.ones(5, 10))
    assert shared_out([team], 2, WORTH) == [2, 3]
    assert shared_out([team], 3, WORTH) == [1, 2, 2] == shared_out([team], 3, 2 * WORTH)
    assert shared_out([team], 4, 2 * WORTH) == [1] * 5


def test_parts_read_what_their_team_reads_and_are_all_of_it():
    team = Team(slice(2, 45, 5), np.array([True, False]))
    found = spread([team], 4, size=WORTH, width=4)
    assert list(chain(*picked(found, 45))) == picked([team], 45)[0]
    assert all(own.counts is team.counts for own in found)


def test_a_step_costs_by_what_is_read_and_something_in_any_case():
    team = Team(slice(0, 6, 2), np.array([True, False]))
    assert cost_of(3, team, size=100, width=8) == WORTH + 3 * 0.5 * 100 * 8


def test_a_part_of_a_team_reads_the_same():
    team = Team(slice(2, 45, 5), np.array([True, False]))
    part = part_of_team(team, slice(1, 3))
    assert picked([part], 45) == [[7, 12]]
    assert part.counts is team.counts
