import numpy as np
import pytest
from served_runs import desk, fitted, ward

import etips
from etips.serve.fields import Form


def form():
    policy = fitted()
    return Form.of(policy.schema, policy.scaler)


def test_a_category_and_a_value_that_may_miss_are_one_field_each():
    own = form()
    assert [field.name for field in own.sequence] == ["MeanBP", "Lactate", "shift"]
    pressure, lactate, shift = own.sequence
    assert (pressure.may_miss, lactate.may_miss, shift.may_miss) == (False, True, False)
    assert (shift.levels, shift.columns, lactate.mark) == (("night", "day"), (2, 3), 4)
    assert [field.name for field in own.static] == ["age"]


def test_what_is_missing_is_carried_forward_within_a_stay_and_marked():
    rows = [(60.0, 2.0, "night"), (61.0, None, "day"), (62.0, None, "day")]
    made = form().steps(rows, np.array([0, 0, 2]))
    assert made[1].tolist() == [61, 2, 0, 1, 1]
    assert np.isnan(made[2, 1])
    assert made[2, 4] == 1


def test_rows_are_read_as_a_table_of_the_same_cells_is(tmp_path):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    n = 60
    table = pandas.DataFrame(
        {
            "stay": np.repeat(np.arange(20), 3),
            "step": np.tile(np.arange(3), 20),
            "pressure": rng.normal(70, 9, n),
            "lactate": np.where(rng.random(n) < 0.3, np.nan, rng.random(n)),
            "ward": np.where(rng.random(n) < 0.5, "icu", "floor"),
            "treat": rng.integers(0, 2, n),
            "harm": rng.integers(0, 2, n),
        }
    )
    log = etips.read_table(table, stay="stay", step="step", action="treat", loss="harm", lag=0)
    own = Form.of(log.schema, None)
    names = [field.name for field in own.sequence]
    cells = [
        tuple(None if value != value else value for value in row)
        for row in table[names].itertuples(index=False)
    ]
    made = own.steps(cells, np.repeat(np.arange(0, n, 3), 3))
    np.testing.assert_array_equal(made, log.sequence[:])


def test_a_field_is_read_and_written_in_a_row():
    row = ward().sequence[0].copy()
    pressure, lactate, shift = form().sequence
    for field, value in ((pressure, 55.0), (shift, "day"), (shift, "night"), (lactate, 3.5)):
        field.write(row, value)
        assert field.read(row) == value
        assert not field.missing(row)
    lactate.write(row, None)
    assert (lactate.read(row), lactate.missing(row), row[4]) == (None, True, 1)


def test_static_fields_are_a_row_a_stay():
    assert desk().form.stays([(50.0,), (61.0,)]).tolist() == [[50], [61]]
