"""Names of the variables, and which of them are called after the length of a step."""

import pytest

from etips.cohorts.sepsis3.variables import TABLE_COLUMNS, step_names


def test_at_four_hours_nothing_is_renamed():
    assert all(name == own for name, own in step_names(4).items())


@pytest.mark.parametrize("hours", [1, 2])
def test_volumes_of_a_step_are_called_after_its_length(hours):
    assert step_names(hours) == {
        "input_4hourly": f"input_{hours}hourly",
        "output_4hourly": f"output_{hours}hourly",
    }
    assert set(step_names(hours)) <= set(TABLE_COLUMNS)
