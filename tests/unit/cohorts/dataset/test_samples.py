"""Section 18: loss, samples and histories."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etips.cohorts.dataset.samples import add_samples
from etips.data.decisions import sofa_change_loss


@pytest.mark.parametrize(
    ("now", "following", "loss"),
    [(5, 5, 0), (6, 6, 1), (6, 5, 0), (5, 6, 1), (0, 0, 0), (12, 1, 0), (0, 1, 1)],
)
def test_loss_of_a_change_in_sofa(now, following, loss):
    assert sofa_change_loss(np.array([now], float), np.array([following], float))[0] == loss


def samples(*stays):
    """Counts of A, B and C for stays given by their block numbers."""
    rows = pl.DataFrame(
        [{"icustayid": i, "bloc": b, "SOFA": 3.0} for i, blocs in enumerate(stays) for b in blocs]
    )
    found = add_samples(rows)
    return [int(found[f"sample_{name}"].sum()) for name in "ABC"]


@pytest.mark.parametrize(
    ("blocs", "expected"),
    [
        (range(1, 21), [18, 18, 18]),
        ([1, 2, 3], [1, 1, 1]),
        ([1, 2], [0, 0, 0]),
        ([1], [0, 0, 0]),
        ([1, 2, 3, 4, 5, 7, 8, 9], [5, 4, 6]),  # the gap costs exactly one sample of A
    ],
)
def test_samples_of_a_stay(blocs, expected):
    assert samples(list(blocs)) == expected


def test_stays_are_counted_apart():
    assert samples([1, 2, 3], [1, 2, 3]) == [2, 2, 2]


def test_the_first_row_is_never_a_sample_and_the_last_has_no_loss():
    rows = pl.DataFrame({"icustayid": [1] * 3, "bloc": [1, 2, 3], "SOFA": [3.0, 4.0, 2.0]})
    found = add_samples(rows)
    assert found["sample_A"].to_list() == [False, True, False]
    assert found["loss_next_bloc"].to_list() == [1.0, 0.0, None]
    assert found["rows_before"].to_list() == [0, 1, 2]


@given(st.integers(3, 12), st.data())
def test_what_a_sample_sees_and_does_does_not_depend_on_later_rows(n, data):
    """D2 at this level: a history is the rows before; changing row t or later leaves it alone."""
    scores = data.draw(st.lists(st.integers(0, 24).map(float), min_size=n, max_size=n))
    at = data.draw(st.integers(1, n - 2))
    rows = pl.DataFrame({"icustayid": [1] * n, "bloc": range(1, n + 1), "SOFA": scores})
    changed = rows.with_columns(
        SOFA=pl.when(pl.col("bloc") > at).then(pl.col("SOFA") + 1).otherwise(pl.col("SOFA"))
    )
    one, other = (add_samples(r).head(at) for r in (rows, changed))
    assert one["rows_before"].equals(other["rows_before"])
    assert one["SOFA"].equals(other["SOFA"])
