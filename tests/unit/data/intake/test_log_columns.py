"""Actions and losses as a table holds them."""

from strategies import read_small, small_table


def test_whole_numbers_are_actions_as_they_stand():
    data = read_small(small_table(a=[0, 2, None, 1, 0, 1]))
    assert data.action.tolist() == [0, 2, -1, 1, 0, 1]
    assert data.n_actions == 3
