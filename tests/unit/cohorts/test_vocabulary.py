"""Engines, rules and data set know no table and no column of any database."""

import re
from pathlib import Path

import pytest

import etips.cohorts
from etips.cohorts.databases import DATABASES

FOLDER = Path(etips.cohorts.__file__).parent
NEUTRAL = [
    *sorted(
        path for part in ("engines", "sepsis3", "dataset") for path in FOLDER.glob(f"{part}/*")
    ),
    FOLDER / "build.py",
    FOLDER / "database.py",
]
# Words of the field, and names of the paper's own table.
PLAIN = {
    "amount", "charttime", "drug", "error", "gender", "patients", "rate", "route", "value",
}  # fmt: skip


def vocabulary():
    """Names of tables and columns that would give a database away, and the names of databases."""
    words = {"mimic", "carevue", "metavision"}
    for database in DATABASES.values():
        words |= database.layout.names
        words |= {column for columns in database.layout.tables.values() for column in columns}
    return words - PLAIN


@pytest.mark.parametrize("path", [path for path in NEUTRAL if path.suffix == ".py"], ids=str)
def test_no_name_of_a_table_or_column_occurs(path):
    written = set(re.findall(r"[a-z_0-9]+", path.read_text().lower()))
    assert written & vocabulary() == set()


def test_the_vocabulary_is_what_it_should_be():
    assert {"chartevents", "icustays", "itemid", "icustay_id", "hadm_id", "gsn"} <= vocabulary()
    assert len(NEUTRAL) > 30
