"""Sepsis-3 as the concepts of mimic-code define it, for comparison with other papers.

Facts of those concepts, written anew (docs/cohort/mimic4.md). Suspected infection: an order of an
antibiotic that begins inside the stay, and a specimen of the patient up to 72 hours before it or 24
hours after it. Sepsis-3: SOFA of 2 or more around one.
"""

from typing import Final

import ibis  # type: ignore[import-untyped, unused-ignore]
import polars as pl

from etips.cohorts.engines.sources import Source
from etips.cohorts.engines.store import Store
from etips.cohorts.mimic.extraction import LOCAL_ROUTES
from etips.cohorts.mimic.hourly_sofa import Tables, hourly_sofa, read_hourly
from etips.cohorts.mimic.items import read_list
from etips.cohorts.sepsis3.events import OwnDefinition
from etips.cohorts.sepsis3.variables import HOUR

_DAY: Final = 24 * HOUR
_BEFORE, _AFTER = 48 * HOUR, 24 * HOUR
_LEAST_SOFA: Final = 2
_LISTS: Final = read_list("mimic_code")
# Words in the name of a drug that make it an antibiotic there, mupirocin and antifungals included.
_NAMES: Final = "|".join(row["text"] for row in _LISTS if row["list"] == "antibiotic")
_NOT_NAMES: Final = "|".join(row["text"] for row in _LISTS if row["list"] == "not an antibiotic")


def read_orders(source: Source, tables: Tables) -> pl.DataFrame:
    """Orders of antibiotics that begin inside an ICU stay: patient, admission, stay, t.

    A diluent counts if the same drug by the same route is also ordered otherwise; an order without
    a route does not.
    """
    rows, icu = tables["prescriptions"], tables["icustays"]
    name, route = rows.drug.lower(), rows.route
    named = name.re_search(_NAMES) & ~name.re_search(_NOT_NAMES)
    local = route.isin(LOCAL_ROUTES) | route.lower().re_search("eye|ear")
    query = rows.filter(named & route.notnull() & ~local & rows.starttime.notnull())
    query = query.select(
        "drug", "route", "drug_type", patient=rows.subject_id, admission=rows.hadm_id,
        t=rows.starttime,
    )  # fmt: skip
    orders = source.fetch(query)
    proper = orders.filter(pl.col("drug_type") != "BASE").select("drug", "route").unique()
    orders = orders.join(proper, on=["drug", "route"], how="semi")
    stays = source.fetch(icu.select("stay", "intime", "outtime", admission="hadm_id"))
    joined = orders.join(stays, on="admission")
    inside = joined.filter(pl.col("t").is_between("intime", "outtime", closed="left"))
    return inside.select("patient", "admission", "stay", "t").unique().sort("stay", "t")


def read_specimens(source: Source, tables: Tables) -> pl.DataFrame:
    """Every specimen once: patient, date, time (null if only the day is known)."""
    rows = tables["microbiologyevents"]
    query = rows.group_by(rows.micro_specimen_id).aggregate(
        patient=rows.subject_id.max(), date=rows.chartdate.max(), time=rows.charttime.max()
    )
    found: ibis.Table = query.select("patient", "date", "time").distinct()
    return source.fetch(found).filter(pl.col("date").is_not_null())


def suspected(orders: pl.DataFrame, specimens: pl.DataFrame) -> pl.DataFrame:
    """Orders with a specimen, both as read above: stay, antibiotic, culture, onset (seconds).

    Of the specimens before an order the first of the earliest day counts, and its time is the
    onset; without one it is the order's time. A specimen without a time is compared by days.
    """
    day = (pl.col("t") // _DAY) * _DAY
    date = (pl.col("date") // _DAY) * _DAY
    time, since, days = pl.col("time"), pl.col("t") - pl.col("time"), day - date
    before = (
        pl.when(time.is_not_null())
        .then((since > 0) & (since <= 72 * HOUR))
        .otherwise((days >= 0) & (days <= 3 * _DAY))
    )
    after = (
        pl.when(time.is_not_null())
        .then((since >= -24 * HOUR) & (since < 0))
        .otherwise((days >= -_DAY) & (days <= 0))
    )
    pairs = orders.join(specimens, on="patient").with_columns(
        before=before, after=after, taken=pl.coalesce(time, date)
    )
    pairs = pairs.filter(pl.col("before") | pl.col("after"))
    pairs = pairs.sort("stay", "t", "date", "time", nulls_last=True)
    first = (
        pl.col("taken").filter(pl.col(side)).first().alias(side) for side in ("before", "after")
    )
    found = pairs.group_by("stay", antibiotic="t").agg(first)
    return found.select(
        "stay",
        "antibiotic",
        culture=pl.coalesce("before", "after"),
        onset=pl.coalesce("before", "antibiotic"),
    ).sort("stay", "onset", "antibiotic")


def own_definition(suspicions: pl.DataFrame, kept: Store, stays_per_block: int) -> OwnDefinition:
    """Onsets, and stays whose SOFA reaches 2 from 48 h before to 24 h after one.

    The onset of a stay with Sepsis-3 is its first one that has such a score around it, that of
    another stay its first one.
    """
    stays, found = suspicions["stay"].unique().sort(), [suspicions.clear()]
    onset = pl.col("onset")
    for at in range(0, stays.len(), stays_per_block):
        block = stays[at : at + stays_per_block]
        scores = hourly_sofa(read_hourly(kept, int(block[0]), int(block[-1])))
        ill = scores.filter(pl.col("sofa") >= _LEAST_SOFA).select("stay", "end")
        pairs = suspicions.join(ill, on="stay")
        around = pl.col("end").is_between(onset - _BEFORE, onset + _AFTER)
        ordered = pairs.filter(around).sort("stay", "onset", "antibiotic", "culture", "end")
        first = ordered.unique("stay", keep="first", maintain_order=True)
        found.append(first.select(suspicions.columns))
    septic = pl.concat(found)
    first = suspicions.sort("stay", "onset").unique("stay", keep="first", maintain_order=True)
    onsets = pl.concat([septic, first]).unique("stay", keep="first", maintain_order=True)
    return OwnDefinition(
        onsets=onsets.select("stay", "onset").sort("stay"), septic=frozenset(septic["stay"])
    )
