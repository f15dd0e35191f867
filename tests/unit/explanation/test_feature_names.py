"""Features by column and by organ system."""

import numpy as np

from etips.cohorts.sepsis3.variables import SEQUENTIAL_FEATURES, STATIC_FEATURES
from etips.data.schema import Schema
from etips.explanation.feature_names import EARLIER_ACTION, Columns, organ_systems, source_of

SCHEMA = Schema(
    sequence=("map", "map_missing", "ward=icu", "ward=bed"),
    n_actions=2,
    categories={"ward": ("icu", "bed")},
    indicators=("map",),
)


def test_levels_and_marks_belong_to_their_column():
    assert [source_of(SCHEMA, name) for name in SCHEMA.sequence] == ["map", "map", "ward", "ward"]
    assert source_of(SCHEMA, "odd_missing") == "odd_missing"


def test_values_add_up_by_column():
    columns = Columns.of(SCHEMA, SCHEMA.sequence, earlier_actions=2)
    assert columns.names == ("map", "ward", EARLIER_ACTION)
    summed = columns.total(np.array([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]))
    assert summed.tolist() == [[3.0, 7.0, 11.0]]


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
