"""What work costs."""

import time

import numpy as np

from etips.bench.costs import measured


def test_a_large_array_shows_in_the_peak_and_is_forgotten_by_the_next():
    with measured() as large:
        block = np.ones(30_000_000)  # 240 MB
        del block
    with measured() as small:
        pass
    assert large.memory - small.memory > 150


def test_waiting_takes_time_and_no_processor():
    with measured() as cost:
        time.sleep(0.1)
    assert cost.seconds >= 0.1
    assert cost.processor < 0.09
