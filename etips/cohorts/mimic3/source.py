"""Which tables and columns the cohort needs, and what is missing from a source (section 3)."""

from collections.abc import Mapping
from typing import Final, Protocol

import ibis  # type: ignore[import-untyped, unused-ignore]
import polars as pl

from etips.cohorts.mimic3.config import CohortConfig
from etips.cohorts.mimic3.store import Store
from etips.errors import DataError

INT, TEXT, NUMBER, TIME = "int64", "string", "float64", "timestamp"

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
        "row_id": INT, "hadm_id": INT, "icustay_id": INT, "startdate": TIME, "gsn": TEXT,
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


class Source(Protocol):
    """A place that holds the raw tables and can answer queries on them."""

    @property
    def name(self) -> str:
        """How refusals call it."""

    def tables(self) -> Mapping[str, frozenset[str]]:
        """Column names by table name, all in lower case."""

    def table(self, name: str, columns: Mapping[str, str]) -> ibis.Table:
        """Return a table with exactly these columns, in these types."""

    @property
    def kept(self) -> Store:
        """Large results on local disk."""

    def begin(self, settings: str) -> None:
        """Take up what was stored from the same tables under the same settings, or begin anew."""

    def fetch(self, query: ibis.Table) -> pl.DataFrame:
        """Run a query whose result is small."""

    def store(self, query: ibis.Table, table: str) -> None:
        """Run a query whose result may be large and keep it on disk under a name."""

    def close(self, *, keep: bool = False) -> None:
        """Let go of connections and, unless they are to be taken up again, stored results."""


def needed(config: CohortConfig) -> dict[str, dict[str, str]]:
    """Tables and typed columns that a configuration reads."""
    tables = {name: dict(columns) for name, columns in _TABLES.items()}
    if config.drop_charted_errors:
        tables["chartevents"]["error"] = INT
    if config.antibiotics_by_name:
        tables["prescriptions"] |= {"drug": TEXT, "route": TEXT, "drug_type": TEXT}
    if config.cultures_from_procedures or config.corrected_items:
        tables["procedureevents_mv"] = dict(_PROCEDURES)
    return tables


KNOWN_TABLES: Final = frozenset({*_TABLES, "procedureevents_mv", "inputevents"})
"""Every table that some profile reads, and the one by which MIMIC-IV is told."""


def readable(config: CohortConfig) -> dict[str, dict[str, str]]:
    """What is needed, and the columns that are read if they are there."""
    tables = needed(config)
    for table, column in _UNITS.items():
        tables[table][column] = TEXT
    return tables


def open_tables(source: Source, config: CohortConfig) -> dict[str, ibis.Table]:
    """Check that the source holds what is needed and return its tables.

    Args:
        source: Where the raw tables are.
        config: Decides which optional tables and columns are read.
    """
    found, wanted = source.tables(), needed(config)
    _refuse_mimic_iv(source.name, found)
    missing = [name for name in wanted if name not in found]
    if missing:
        raise DataError(
            source.name,
            f"must hold the MIMIC-III tables; missing: {', '.join(missing)}",
            fix="Give the folder or schema that holds all of them.",
        )
    lacking = [
        f"{name}.{column}"
        for name, columns in wanted.items()
        for column in columns
        if column not in found[name]
    ]
    if lacking:
        raise DataError(
            source.name,
            f"must hold the MIMIC-III v1.4 columns; missing: {', '.join(lacking)}",
            fix="Give the tables as PhysioNet ships them.",
        )
    return {
        name: _with_unit(source.table(name, _present(columns, found[name])), name)
        for name, columns in readable(config).items()
    }


def _present(columns: Mapping[str, str], found: frozenset[str]) -> dict[str, str]:
    return {name: kind for name, kind in columns.items() if name in found}


def _with_unit(table: ibis.Table, name: str) -> ibis.Table:
    """A source without the column of units says nothing about them."""
    column = _UNITS.get(name)
    if column is None or column in table.columns:
        return table
    return table.mutate(**{column: ibis.null("string")})


def _refuse_mimic_iv(where: str, found: Mapping[str, frozenset[str]]) -> None:
    """Tell MIMIC-IV by its own names (section 21.1) rather than by a list of missing columns."""
    signs = (
        "stay_id" in found.get("icustays", ()),
        "anchor_age" in found.get("patients", ()),
        "inputevents" in found and "inputevents_mv" not in found,
    )
    if any(signs):
        raise DataError(
            where, "looks like MIMIC-IV", fix="This builder reads MIMIC-III v1.4; give that."
        )
