"""Sizes that may be told."""

import numpy as np
from small_worlds import CLINIC, ward

from etips.data.shown_sizes import show_sizes
from etips.disclosure import are_few


def test_sizes_that_do_not_tell_of_a_few_are_told():
    data = CLINIC.log(200, seed=0)
    sizes = show_sizes(data)
    assert (sizes.n_decisions, sizes.n_stays) == (data.n_decisions, data.n_stays)


def test_p2_no_two_of_them_differ_by_few_nor_from_what_is_known():
    rng = np.random.default_rng(0)
    for seed in range(30):
        data = ward(n_stays=int(rng.integers(12, 80)), lag=int(rng.integers(0, 2)), seed=seed)
        known = rng.integers(11, 200, 3).tolist()
        counts = show_sizes(data, known=known).counts
        assert not any(are_few(count) for count in counts)
        both = [*counts, *known]
        assert not any(are_few(abs(one - other)) for one in counts for other in both)
