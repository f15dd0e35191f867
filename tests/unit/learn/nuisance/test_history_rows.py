"""Histories as rows of one width."""

import numpy as np
import pytest
from small_worlds import ward

from etips.learn.nuisance.history_rows import last_and_mean


@pytest.mark.parametrize("lag", [0, 1])
def test_the_summary_is_last_step_mean_count_and_static(lag):
    data = ward(lag=lag)
    windows = data.histories()
    found = last_and_mean(data)
    for row, (window, length) in enumerate(zip(windows.sequence, windows.lengths, strict=True)):
        seen = window[:length].astype(np.float64)
        expected = np.concatenate([seen[-1], seen.mean(axis=0), [length], windows.static[row]])
        assert found[row] == pytest.approx(expected, abs=1e-5)


def test_the_summary_answers_questions_past_the_end():
    asked = ward(lag=1).without_log()
    found = last_and_mean(asked)
    assert found.shape == (asked.n_steps, 2 * 4 + 1 + 2)
    assert (found[:, :4] == asked.sequence[:]).all()
