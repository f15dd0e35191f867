"""Draws by inverse cdf from many rows at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from etips.errors import SettingError
from etips.worlds.draws import Chances, generator

weights = arrays(np.float64, (4, 5), elements=st.sampled_from([0.0, 1e-9, 0.25, 1.0, 3.0]))


class Uniforms:
    """Stands in for a generator whose next uniform numbers are known."""

    def __init__(self, values):
        self.values = np.asarray(values, float)

    def random(self, size):
        assert size == len(self.values)
        return self.values


def plain_draw(row, uniform):
    """The textbook way, one row at a time."""
    positive = np.flatnonzero(row)
    edges = np.cumsum(row[positive]) / row.sum()
    return positive[min(np.searchsorted(edges, uniform, side="right"), positive.size - 1)]


@given(weights, st.lists(st.floats(0, 0.999), min_size=4, max_size=4))
def test_draws_agree_with_the_textbook_one_row_at_a_time(table, uniforms):
    table[:, 2] += 1  # no row without a chance
    found = Chances.of(table).draw(np.arange(4), Uniforms(uniforms))
    plain = np.array([plain_draw(row, u) for row, u in zip(table, uniforms, strict=True)])
    edge = np.cumsum(table, axis=1) / table.sum(axis=1, keepdims=True)
    on_an_edge = (np.abs(edge - np.array(uniforms)[:, None]) < 1e-9).any(axis=1)
    assert (found == plain)[~on_an_edge].all()


@given(weights, st.sampled_from([0.0, 1e-17, 0.5, 1 - 2**-53]))
def test_what_has_no_chance_is_never_drawn_not_even_at_the_ends(table, uniform):
    table[:, 0] += 1e-3
    table[:, 4] = 0
    rows = np.repeat(np.arange(4), 3)
    found = Chances.of(table).draw(rows, Uniforms(np.full(12, uniform)))
    assert (table[rows, found] > 0).all()


def test_rows_without_any_chance_do_not_disturb_the_others():
    chances = Chances.of(np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0, 0.0]]))
    assert chances.draw(np.array([1, 3, 1]), Uniforms([0.0, 0.9, 0.9])).tolist() == [1, 0, 1]


def test_streams_of_one_seed_differ_and_repeat():
    first, again, other = generator(3, 1), generator(3, 1), generator(3, 2)
    numbers = first.random(4)
    assert (numbers == again.random(4)).all()
    assert (numbers != other.random(4)).all()


def test_a_negative_seed_is_refused():
    with pytest.raises(SettingError, match=r"^seed: must not be negative"):
        generator(-1)
