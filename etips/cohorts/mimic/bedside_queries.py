"""Queries that are the same for every MIMIC but for the name of the column with the stay."""

from collections.abc import Mapping
from typing import Final

import ibis  # type: ignore[import-untyped, unused-ignore]
import polars as pl

from etips.cohorts.engines.raw_rows import in_seconds, require_owners
from etips.cohorts.engines.raw_source import RawSource
from etips.cohorts.mimic.items import PREADMISSION_URINE_ITEMS, Items
from etips.errors import DataError

Tables = Mapping[str, ibis.Table]
"""Raw tables by name."""

_OWNERS: Final = {"admissions": "hadm_id", "patients": "subject_id"}


def read_stays(
    source: RawSource, tables: Tables, *, stay_column: str, born: tuple[str, ...]
) -> pl.DataFrame:
    """One row per ICU stay, with the columns of `Extraction.stays` but for the age.

    Args:
        source: Where the query runs.
        tables: The raw tables.
        stay_column: Name of the column with the stay.
        born: Columns of the patient that tell the age.
    """
    icu, adm, pat = tables["icustays"], tables["admissions"], tables["patients"]
    for owner, key in _OWNERS.items():
        require_owners(source, icu, tables[owner], key=key, table="icustays", owner=owner)
    joined = icu.join(adm.select("hadm_id", "dischtime"), "hadm_id").join(pat, "subject_id")
    query = joined.select(
        "gender", *born, stay=stay_column, patient="subject_id", admission="hadm_id",
        icu_in="intime", icu_out="outtime", discharge="dischtime", death="dod",
    )  # fmt: skip
    stays = in_seconds(source.fetch(query)).unique().sort("stay")
    if stays["stay"].n_unique() != stays.height:
        rule = f"{stay_column}, hadm_id and subject_id must each name one row"
        raise DataError("icustays, admissions, patients", rule, fix="Remove the repeated rows.")
    return stays


def read_microbiology(source: RawSource, tables: Tables) -> pl.DataFrame:
    """Every specimen: patient, admission, t; the date stands in for a missing time."""
    rows = tables["microbiologyevents"]
    time = rows.charttime.coalesce(rows.chartdate)
    query = rows.filter(time.notnull())
    query = query.select(patient=rows.subject_id, admission=rows.hadm_id, t=time).distinct()
    return in_seconds(source.fetch(query))


def urine_query(
    rows: ibis.Table, items: Items, candidates: ibis.Table, *, stay_column: str
) -> ibis.Table:
    """Urine of candidate stays, that of before admission included.

    Args:
        rows: The table of what was passed.
        items: What to look for.
        candidates: A table with the column of the stay.
        stay_column: Its name in both.
    """
    wanted = sorted({*items.urine, *PREADMISSION_URINE_ITEMS})
    kept = (
        rows.itemid.isin(wanted)
        & rows[stay_column].isin(candidates[stay_column])
        & rows.value.notnull()
        & rows.charttime.notnull()
    )
    return rows.filter(kept).select(
        stay=rows[stay_column],
        itemid=rows.itemid.cast("int32"),
        t=rows.charttime,
        amount=rows.value,
        unit=rows.valueuom,
        measured=True,
    )


def procedures_query(rows: ibis.Table, items: Items, *, stay_column: str) -> ibis.Table:
    """Cultures and ventilation among the procedures of all stays.

    Args:
        rows: The table of procedures.
        items: What to look for.
        stay_column: Name of the column with the stay.
    """
    wanted = sorted({*items.procedure_cultures, *items.procedure_ventilation})
    stay = rows[stay_column]
    return rows.filter(rows.itemid.isin(wanted) & stay.notnull() & rows.starttime.notnull()).select(
        stay=stay, itemid=rows.itemid.cast("int32"), start=rows.starttime, end=rows.endtime
    )
