"""A coded array reads like the plain one it stands for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etips.data import Coded


@st.composite
def coded_and_plain(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_codes, width, n = draw(st.integers(1, 5)), draw(st.integers(0, 3)), draw(st.integers(0, 8))
    kind = draw(st.sampled_from([np.uint8, np.float32, np.float64, np.int16]))
    unit = draw(st.sampled_from([1.0, 1 / 255]))
    table = (rng.random((n_codes, width)) * 255).astype(kind)
    code = rng.integers(0, n_codes, n).astype(np.int32)
    rows = [[float(np.float32(v) * np.float32(unit)) for v in table[c]] for c in code]
    return Coded(table, code, unit), np.array(rows, np.float32).reshape(n, width)


@given(coded_and_plain(), st.data())
def test_reading_rows_gives_what_the_plain_array_gives(pair, draw):
    coded, plain = pair
    n = len(plain)
    start, stop = sorted(draw.draw(st.tuples(st.integers(0, n), st.integers(0, n))))
    mask = np.array(draw.draw(st.lists(st.booleans(), min_size=n, max_size=n)), bool)
    for rows in (slice(None), slice(start, stop), np.flatnonzero(mask), mask):
        assert np.array_equal(coded[rows], plain[rows])
        assert coded[rows].dtype == np.float32
        taken = coded.take(rows)
        assert isinstance(taken, Coded)
        assert np.array_equal(taken[:], plain[rows])
        assert taken.table.base is coded.table.base
    assert np.array_equal(np.asarray(coded), plain)
    assert np.array_equal(np.asarray(coded, np.float64), plain.astype(np.float64))
    assert (coded.shape, coded.ndim, coded.dtype, len(coded)) == (plain.shape, 2, np.float32, n)


def test_its_size_is_that_of_table_and_codes():
    coded = Coded(np.zeros((10, 784), np.uint8), np.zeros(1000, np.int32), 1 / 255)
    assert coded.nbytes == 7840 + 4000
    assert coded.expanded_table().shape == (10, 784)


def test_it_cannot_be_an_array_without_copying():
    coded = Coded(np.zeros((1, 1)), np.zeros(1, np.int32))
    with pytest.raises(ValueError, match="has to be expanded, which copies"):
        np.asarray(coded, copy=False)


def test_its_repr_shows_no_value():
    assert (
        repr(Coded(np.full((2, 3), 777), np.zeros(4, np.int32))) == "Coded(shape=(4, 3), n_codes=2)"
    )


def test_rows_that_do_not_occur_can_be_left_out():
    whole = Coded(np.arange(12, dtype=np.uint8).reshape(6, 2), np.array([4, 1, 4], np.int32), 0.5)
    used = whole.without_unused()
    assert used.table.tolist() == [[2, 3], [8, 9]]
    assert np.array_equal(used[:], whole[:])
    assert used.without_unused() is used
