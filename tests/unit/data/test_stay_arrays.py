"""What checks and writers ask of Trajectories is there."""

from random_cohorts import Cohort

from etips.data.stay_arrays import StayArrays


def test_trajectories_have_all_that_checks_and_writers_ask_for():
    asked = [name for name, own in vars(StayArrays).items() if isinstance(own, property)]
    data = Cohort(seed=1).make()
    assert len(asked) == 17
    assert [name for name in asked if not hasattr(data, name)] == []
