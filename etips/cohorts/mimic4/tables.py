"""Which tables and columns of MIMIC-IV the cohort needs (docs/cohort/mimic4.md)."""

from collections.abc import Mapping
from typing import Final

import ibis  # type: ignore[import-untyped, unused-ignore]

from etips.cohorts.engines.checked_tables import open_checked
from etips.cohorts.engines.layouts import CODE, INT, NUMBER, TEXT, TIME, Layout, TypedTables
from etips.cohorts.engines.raw_source import RawSource
from etips.cohorts.mimic4.switches import WIDEST, Onset, Reading
from etips.errors import DataError

FOLDER_OF: Final = {
    **dict.fromkeys(
        ("patients", "admissions", "labevents", "microbiologyevents", "prescriptions"), "hosp"
    ),
    **dict.fromkeys(
        ("icustays", "chartevents", "inputevents", "outputevents", "procedureevents", "d_items"),
        "icu",
    ),
}
"""In which folder PhysioNet ships each table."""

_TABLES: Final[TypedTables] = {
    "patients": {
        "subject_id": INT, "gender": TEXT, "anchor_age": INT, "anchor_year": INT, "dod": TIME,
    },
    "admissions": {"subject_id": INT, "hadm_id": INT, "dischtime": TIME},
    "icustays": {
        "subject_id": INT, "hadm_id": INT, "stay_id": INT, "intime": TIME, "outtime": TIME,
    },
    "chartevents": {
        "stay_id": INT, "charttime": TIME, "itemid": INT, "value": TEXT, "valuenum": NUMBER,
    },
    "labevents": {
        "subject_id": INT, "hadm_id": INT, "charttime": TIME, "itemid": INT, "valuenum": NUMBER,
    },
    "microbiologyevents": {
        "subject_id": INT, "hadm_id": INT, "charttime": TIME, "chartdate": TIME,
    },
    "prescriptions": {
        "hadm_id": INT, "pharmacy_id": INT, "starttime": TIME, "stoptime": TIME, "drug": TEXT,
        "gsn": CODE,
    },
    "inputevents": {
        "stay_id": INT, "starttime": TIME, "endtime": TIME, "itemid": INT, "amount": NUMBER,
        "amountuom": TEXT, "rate": NUMBER, "rateuom": TEXT, "statusdescription": TEXT,
    },
    "outputevents": {"stay_id": INT, "charttime": TIME, "itemid": INT, "value": NUMBER},
}  # fmt: skip
# Looked at by the audit; a source without them is welcome.
_OPTIONAL: Final[TypedTables] = {
    "chartevents": {"valueuom": TEXT},
    "labevents": {"valueuom": TEXT},
    "outputevents": {"valueuom": TEXT},
    "d_items": {"itemid": INT, "label": TEXT, "linksto": TEXT},
}
# What the definition of mimic-code looks at besides.
_MIMIC_CODE: Final[TypedTables] = {
    "labevents": {"specimen_id": INT, "value": TEXT},
    "microbiologyevents": {"micro_specimen_id": INT},
    "prescriptions": {"subject_id": INT, "route": TEXT, "drug_type": TEXT},
    "inputevents": {"patientweight": NUMBER},
}
_PROCEDURES: Final = {"stay_id": INT, "starttime": TIME, "endtime": TIME, "itemid": INT}


def needed(reading: Reading) -> dict[str, dict[str, str]]:
    """Tables and typed columns that a profile reads."""
    tables = {name: dict(columns) for name, columns in _TABLES.items()}
    if reading.arterial_gases_only:
        tables["labevents"] |= {"specimen_id": INT, "value": TEXT}
    if reading.antibiotics_by_name:
        tables["prescriptions"] |= {"route": TEXT, "drug_type": TEXT}
    if reading.milligram_rates:
        tables["inputevents"]["patientweight"] = NUMBER
    if reading.onset == Onset.MIMIC_CODE:
        for name, columns in _MIMIC_CODE.items():
            tables[name] |= columns
    if reading.reads_procedures:
        tables["procedureevents"] = dict(_PROCEDURES)
    return tables


def readable(reading: Reading) -> dict[str, dict[str, str]]:
    """What is needed, and the tables and columns that are read if they are there."""
    tables = needed(reading)
    for name, columns in _OPTIONAL.items():
        tables[name] = {**tables.get(name, {}), **columns}
    return tables


def open_tables(source: RawSource, reading: Reading) -> dict[str, ibis.Table]:
    """Check that the source holds what is needed and return its tables.

    Args:
        source: Where the raw tables are.
        reading: Decides which optional tables and columns are read.
    """
    _refuse_mimic_iii(source.name, source.tables())
    return open_checked(
        source, needed(reading), _OPTIONAL, label="MIMIC-IV", version="MIMIC-IV v2.2 or v3.1"
    )


def _refuse_mimic_iii(where: str, there: Mapping[str, frozenset[str]]) -> None:
    """Tell MIMIC-III by its own names rather than by a list of missing columns."""
    if "icustay_id" in there.get("icustays", ()) or "inputevents_mv" in there:
        raise DataError(where, "looks like MIMIC-III", fix="Give MIMIC-IV v2.2 or v3.1 here.")


_OWN_TABLES: Final = ("inputevents", "procedureevents")
LAYOUT: Final = Layout(
    label="MIMIC-IV",
    tables=readable(WIDEST),
    folders=("", "hosp", "icu", "core"),
    schemas=("mimiciv_hosp", "mimiciv_icu"),
)


def is_mimic4(tables: Mapping[str, frozenset[str]]) -> bool:
    """Whether there is a table or a column that only MIMIC-IV has."""
    return (
        "stay_id" in tables.get("icustays", ())
        or "anchor_age" in tables.get("patients", ())
        or not tables.keys().isdisjoint(_OWN_TABLES)
    )
