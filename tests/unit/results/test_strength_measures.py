from dataclasses import replace

import numpy as np
from missing_worlds import make_missing

from etips.results.strength_measures import MOST_COLUMNS, measure_features


def test_features_are_measured_by_their_names_and_their_columns_belong_together():
    data = make_missing(1_500, seed=0).data
    found = measure_features(data)
    names = [feature.names for feature in found if len(feature.names) == 1]
    assert set(names) == {("lactate",), ("SOFA",), ("age",), ("weight",)}
    assert names[-1] == ("weight",)  # no action hangs on it
    flagged = replace(
        data,
        schema=replace(
            data.schema,
            sequence=("ward=icu", "ward=er", "age", "age_missing"),
            categories={"ward": ("icu", "er")},
        ),
    )
    found = measure_features(flagged)
    assert {feature.names for feature in found} == {("ward",), ("age",)} | {found[-1].names}


def test_pixels_are_no_features_to_compare_with():
    data = make_missing(50, seed=1).data
    wide = MOST_COLUMNS + 1
    schema = replace(data.schema, sequence=tuple(f"p{n}" for n in range(wide)))
    images = replace(data, sequence=np.zeros((50, wide), np.float32), schema=schema)
    assert measure_features(images) == ()
