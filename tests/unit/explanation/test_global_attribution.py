"""Which columns a policy goes by on the whole; columns and their organ systems."""

import numpy as np
import pytest

from etips.cohorts.sepsis3.variables import SEQUENTIAL_FEATURES, STATIC_FEATURES
from etips.data.schema import Schema
from etips.errors import DataError
from etips.explanation.feature_names import organ_systems, source_of
from etips.explanation.global_attribution import (
    agree,
    attribute_overall,
    compare_seeds,
    rank_correlation,
)


def test_columns_come_with_limits_and_shares_that_add_up(policy, log):
    own = attribute_overall(policy, log, most=60)
    assert {column.name for column in own.columns} == {*log.schema.sequence, *log.schema.static}
    assert sum(column.share for column in own.columns) == pytest.approx(1)
    means = [column.mean for column in own.columns]
    assert means == sorted(means, reverse=True)
    assert all(column.low <= column.mean <= column.high for column in own.columns)
    assert own.completeness_error <= 0.01
    assert 0 <= own.networks_agree <= 1


def test_limits_are_as_wide_as_another_draw_differs(policy, log):
    """Twice as far apart as their limits, means of two halves would be a wrong formula."""
    halves = [log.subset(np.arange(start, log.n_stays, 2)) for start in (0, 1)]
    one, other = (
        {own.name: own for own in attribute_overall(policy, half).columns} for half in halves
    )
    z = [
        (one[name].mean - other[name].mean)
        / np.hypot(one[name].high - one[name].mean, other[name].high - other[name].mean)
        * 1.96
        for name in one
    ]
    assert np.abs(z).max() < 4


def test_a_policy_agrees_with_itself(policy, log):
    own = compare_seeds([policy, policy], log, most=30)
    assert own.first_in_common == 1
    assert own.rank_correlation == pytest.approx(1)


def test_agreement_is_by_the_first_columns_and_by_ranks():
    one = {f"x{k}": 20.0 - k for k in range(20)}
    other = {name: -value for name, value in one.items()}
    found = agree([one, other])
    assert found.first_in_common == 0
    assert found.rank_correlation == pytest.approx(-1)


def test_equal_values_share_their_rank():
    assert rank_correlation(np.array([1.0, 1, 2]), np.array([5.0, 5, 9])) == pytest.approx(1)
    assert rank_correlation(np.zeros(3), np.arange(3.0)) == 0


def test_ten_people_are_too_few(policy, log):
    with pytest.raises(DataError, match="11 people"):
        attribute_overall(policy, log.subset(slice(0, 10)))


SCHEMA = Schema(
    sequence=("map", "map_missing", "ward=icu", "ward=bed"),
    n_actions=2,
    categories={"ward": ("icu", "bed")},
    indicators=("map",),
)


def test_levels_and_marks_belong_to_their_column():
    assert [source_of(SCHEMA, name) for name in SCHEMA.sequence] == ["map", "map", "ward", "ward"]
    assert source_of(SCHEMA, "odd_missing") == "odd_missing"


def test_the_cohort_knows_the_organ_system_of_every_feature_it_has():
    systems = organ_systems((*SEQUENTIAL_FEATURES, *STATIC_FEATURES))
    assert "other" not in systems
    assert "MeanBP" in systems["circulation"]
    assert sum(map(len, systems.values())) == len(SEQUENTIAL_FEATURES) + len(STATIC_FEATURES)


def test_steps_of_another_length_are_the_same_columns():
    names = tuple(name.replace("_4hourly", "_2hourly") for name in SEQUENTIAL_FEATURES)
    assert "input_2hourly" in organ_systems(names)["fluids"]


def test_a_table_that_the_cohort_does_not_know_has_no_systems():
    assert organ_systems(("a", "b", "HR")) == {}
    assert organ_systems(()) == {}
