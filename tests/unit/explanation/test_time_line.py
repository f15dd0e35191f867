"""A stay along its decisions."""

import numpy as np

from etips.explanation.stay_explanation import explain_stay
from etips.explanation.time_line import TimeLine


def test_the_strongest_columns_come_first_and_values_are_those_of_the_decisions(policy, longest):
    stay = explain_stay(policy, longest)
    line = TimeLine.of(stay, most=3)
    assert line.values.shape == (longest.n_decisions, 3)
    sizes = np.abs(line.values).sum(axis=0)
    assert list(sizes) == sorted(sizes, reverse=True)
    first = stay.decisions[0].attribution.by_column()
    assert line.values[0, 0] == first[line.columns[0]]
    assert line.labels[0].startswith("1: ")
