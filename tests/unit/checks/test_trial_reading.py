"""Reading to see what comes of it: faults are kept, the rest is read without them."""

import pyarrow as pa
import pytest

from etips.checks.trial_reading import try_reading
from etips.data.tables.columns import TableColumns
from etips.errors import ResourceError

ROLES = TableColumns(stay="stay", step="t", action=("drug",), loss="died")
GOOD = {
    "stay": [1, 1, 1, 2, 2, 2],
    "t": [0, 1, 2, 0, 1, 2],
    "drug": [0, 1, 0, 1, 0, 1],
    "died": [0, 0, 1, 0, 0, 0],
    "hr": [80.0, 81.0, 82.0, 83.0, 84.0, 85.0],
}


def trial(columns=ROLES, **more):
    table = pa.table({**GOOD, **more})
    features = set(table.column_names) - {"stay", "t", "drug", "died"}
    return try_reading(table, columns, features)


def test_a_sound_table_is_read():
    made = trial()
    assert made.stays.n_stays == 2
    assert made.faults == ()
    assert made.without == ()


def test_a_faulty_log_is_told_and_nothing_is_read():
    made = trial(drug=[0.5, 1, 0, 1, 0, 1], died=[float("inf"), 0, 1, 0, 0, 0])
    assert made.stays is None
    assert made.faults


def test_a_machine_at_fault_is_no_fault_of_the_table(monkeypatch):
    def full(*_, **__):
        raise ResourceError("disk", "is full")

    monkeypatch.setattr("etips.checks.trial_reading.read_table", full)
    with pytest.raises(ResourceError):
        trial()


def test_faulty_features_are_told_and_left_aside():
    made = trial(bp=[1.0, float("inf"), 1.0, 1.0, 1.0, 1.0])
    assert made.without == ("bp",)
    assert len(made.faults) == 1
    assert "column bp" in made.faults[0]
    assert made.stays.schema.sequence == ("hr",)
