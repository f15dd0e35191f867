"""Which tables and columns the cohort needs, and what is missing from a source (section 3)."""

from collections.abc import Mapping
from typing import Final

import ibis  # type: ignore[import-untyped, unused-ignore]

from etips.cohorts.engines.checked_tables import open_checked
from etips.cohorts.engines.layouts import CODE, INT, NUMBER, TEXT, TIME, Layout
from etips.cohorts.engines.raw_source import RawSource
from etips.cohorts.mimic3.switches import CLEAN, Reading
from etips.errors import DataError

_TABLES: Final[Mapping[str, Mapping[str, str]]] = {
    "patients": {"subject_id": INT, "gender": TEXT, "dob": TIME, "dod": TIME},
    "admissions": {"subject_id": INT, "hadm_id": INT, "dischtime": TIME},
    "icustays": {
        "subject_id": INT, "hadm_id": INT, "icustay_id": INT, "intime": TIME, "outtime": TIME,
    },
    "chartevents": {
        "icustay_id": INT, "charttime": TIME, "itemid": INT, "value": TEXT, "valuenum": NUMBER,
    },
    "labevents": {"hadm_id": INT, "charttime": TIME, "itemid": INT, "valuenum": NUMBER},
    "microbiologyevents": {
        "subject_id": INT, "hadm_id": INT, "charttime": TIME, "chartdate": TIME,
    },
    "prescriptions": {
        "row_id": INT, "hadm_id": INT, "icustay_id": INT, "startdate": TIME, "gsn": CODE,
    },
    "inputevents_mv": {
        "icustay_id": INT, "starttime": TIME, "endtime": TIME, "itemid": INT, "amount": NUMBER,
        "rate": NUMBER, "rateuom": TEXT, "statusdescription": TEXT,
    },
    "inputevents_cv": {
        "icustay_id": INT, "charttime": TIME, "itemid": INT, "amount": NUMBER, "rate": NUMBER,
        "rateuom": TEXT,
    },
    "outputevents": {"icustay_id": INT, "charttime": TIME, "itemid": INT, "value": NUMBER},
}  # fmt: skip
# Looked at by the units audit; a source without them is welcome.
_UNITS: Final = {
    "chartevents": "valueuom", "labevents": "valueuom", "outputevents": "valueuom",
    "inputevents_mv": "amountuom", "inputevents_cv": "amountuom",
}  # fmt: skip
_PROCEDURES: Final = {"icustay_id": INT, "starttime": TIME, "endtime": TIME, "itemid": INT}


def needed(reading: Reading) -> dict[str, dict[str, str]]:
    """Tables and typed columns that a profile reads."""
    tables = {name: dict(columns) for name, columns in _TABLES.items()}
    if reading.drop_charted_errors:
        tables["chartevents"]["error"] = INT
    if reading.arterial_gases_only:
        tables["labevents"]["value"] = TEXT
    if reading.antibiotics_by_name:
        tables["prescriptions"] |= {"drug": TEXT, "route": TEXT, "drug_type": TEXT}
    if reading.reads_procedures:
        tables["procedureevents_mv"] = dict(_PROCEDURES)
    return tables


def readable(reading: Reading) -> dict[str, dict[str, str]]:
    """What is needed, and the columns that are read if they are there."""
    tables = needed(reading)
    for table, column in _UNITS.items():
        tables[table][column] = TEXT
    return tables


def open_tables(source: RawSource, reading: Reading) -> dict[str, ibis.Table]:
    """Check that the source holds what is needed and return its tables.

    Args:
        source: Where the raw tables are.
        reading: Decides which optional tables and columns are read.
    """
    _refuse_mimic_iv(source.name, source.tables())
    units = {table: {column: TEXT} for table, column in _UNITS.items()}
    return open_checked(source, needed(reading), units, label="MIMIC-III", version="MIMIC-III v1.4")


def _refuse_mimic_iv(where: str, there: Mapping[str, frozenset[str]]) -> None:
    """Tell MIMIC-IV by its own names (section 21.1) rather than by a list of missing columns."""
    signs = (
        "stay_id" in there.get("icustays", ()),
        "anchor_age" in there.get("patients", ()),
        "inputevents" in there and "inputevents_mv" not in there,
    )
    if any(signs):
        raise DataError(where, "looks like MIMIC-IV", fix="Give MIMIC-III v1.4 here.")


_OWN_TABLES: Final = ("inputevents_mv", "inputevents_cv", "procedureevents_mv")
LAYOUT: Final = Layout(
    label="MIMIC-III",
    tables=readable(CLEAN.reading),
    signs=frozenset({"inputevents"}),  # by which MIMIC-IV is told
    schemas=("mimiciii",),
)


def is_mimic3(tables: Mapping[str, frozenset[str]]) -> bool:
    """Whether there is a table or a column that only MIMIC-III has."""
    return (
        "icustay_id" in tables.get("icustays", ())
        or "dob" in tables.get("patients", ())
        or not tables.keys().isdisjoint(_OWN_TABLES)
    )
