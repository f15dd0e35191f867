"""Raw rows that the hourly SOFA of mimic-code is made of, kept beside those of the cohort."""

from collections.abc import Mapping
from typing import Final

import ibis  # type: ignore[import-untyped, unused-ignore]
import ibis.expr.types as ir  # type: ignore[import-untyped, unused-ignore]
import polars as pl

from etips.cohorts.engines.address import RawSource
from etips.cohorts.engines.checked_tables import in_seconds, require_finite
from etips.cohorts.engines.store import Store
from etips.cohorts.mimic.extraction import is_arterial

HEART_RATE, FIO2, DEVICE, MODE, HAMILTON_MODE = 220045, 223835, 226732, 223849, 229314
EYE, VERBAL, MOTOR = 220739, 223900, 223901
MEAN_PRESSURES: Final = (220052, 220181, 225312)
FLOWS: Final = (223834, 227582, 227287)
_CHARTED: Final = (
    HEART_RATE, FIO2, DEVICE, MODE, HAMILTON_MODE, EYE, VERBAL, MOTOR, *MEAN_PRESSURES, *FLOWS,
)  # fmt: skip
SPECIMEN_ITEM: Final = 52033  # its text says where a blood gas was taken
OXYGEN_PRESSURE, GAS_FIO2, BILIRUBIN, CREATININE, PLATELETS = 50821, 50816, 50885, 50912, 51265
_MEASURED: Final = (OXYGEN_PRESSURE, GAS_FIO2, BILIRUBIN, CREATININE, PLATELETS)
EPINEPHRINE, NOREPINEPHRINE, DOPAMINE, DOBUTAMINE = 221289, 221906, 221662, 221653
_GIVEN: Final = (EPINEPHRINE, NOREPINEPHRINE, DOPAMINE, DOBUTAMINE)
IRRIGANT: Final = 227488
_PASSED: Final = (
    226559, 226560, 226561, 226584, 226563, 226564, 226565, 226567, 226557, 226558, IRRIGANT,
    227489,
)  # fmt: skip
# A score counts from two days before the onset, which lies up to three days before the stay.
_DAYS_BEFORE, _DAYS_AFTER = 7, 3
# A heart rate further off than this is a slip and makes no hours.
_MONTH: Final = ibis.interval(months=1)
_TABLES: Final = {
    "hourly_chart": "chartevents",
    "hourly_labs": "labevents",
    "hourly_given": "inputevents",
    "hourly_urine": "outputevents",
}
NAMES: Final = tuple(_TABLES)


Tables = Mapping[str, ibis.Table]
"""Raw tables by name, their column with the stay called `stay`."""


def store_hourly(source: RawSource, tables: Tables, stays: list[int]) -> None:
    """Keep the rows of some stays."""
    wanted = ibis.memtable(pl.DataFrame({"stay": pl.Series(stays, dtype=pl.Int64)}))
    for name, query in zip(NAMES, (_chart, _labs, _given, _urine), strict=True):
        source.store(query(tables, wanted), name, by="stay")


def read_hourly(kept: Store, first: int, last: int) -> dict[str, pl.DataFrame]:
    """The kept rows of the stays first..last, times in seconds, by name."""
    frames = {
        name: in_seconds(kept.rows(name, between=("stay", first, last))).unique() for name in NAMES
    }
    for name, frame in frames.items():
        require_finite(_TABLES[name], frame)
    return frames


def _near(tables: Tables, stays: ibis.Table) -> ibis.Table:
    """Stays with their patient, their admission, and the time around them that is looked at."""
    icu = tables["icustays"]
    return icu.filter(icu.stay.isin(stays.stay)).select(
        "subject_id", "stay", own=icu.hadm_id,
        earliest=icu.intime - _MONTH, latest=icu.outtime + _MONTH,
        opens=icu.intime - ibis.interval(days=_DAYS_BEFORE),
        closes=icu.outtime + ibis.interval(days=_DAYS_AFTER),
    )  # fmt: skip


def _chart(tables: Tables, stays: ibis.Table) -> ibis.Table:
    """Charted rows of a stay, and inspired oxygen of the patient's other stays near it.

    A row without a value counts too: a heart rate makes hours, a part of the coma scale a time.
    """
    rows, icu = tables["chartevents"], tables["icustays"]
    known = rows.filter(rows.itemid.isin(_CHARTED) & rows.charttime.notnull())
    other = icu.select("subject_id", other="stay")
    pairs = other.join(_near(tables, stays), "subject_id").drop("subject_id")
    joined = known.rename(other="stay").join(pairs, "other")
    near = (joined.itemid == FIO2) & joined.charttime.between(joined.opens, joined.closes)
    beat = (joined.charttime > joined.earliest) & (joined.charttime < joined.latest)
    own = (joined.other == joined.stay) & ((joined.itemid != HEART_RATE) | beat)
    kept = joined.filter(own | near)
    return kept.select(
        "stay",
        itemid=kept.itemid.cast("int32"),
        t=kept.charttime,
        number=kept.valuenum,
        text=kept.value.strip().lower().nullif(""),
    )


def _labs(tables: Tables, stays: ibis.Table) -> ibis.Table:
    """Results of the patient near a stay, and whether they name its admission."""
    labs = tables["labevents"]
    tells = labs.itemid == SPECIMEN_ITEM
    counts = tells | (labs.itemid.isin(_MEASURED) & labs.valuenum.notnull())
    known = labs.filter(counts & labs.charttime.notnull())
    joined = known.join(_near(tables, stays), "subject_id")
    within = joined.filter(joined.charttime.between(joined.opens, joined.closes))
    arterial = (within.itemid == SPECIMEN_ITEM) & is_arterial(within.value).fill_null(False)
    return within.select(
        "stay",
        itemid=within.itemid.cast("int32"),
        t=within.charttime,
        number=within.valuenum,
        specimen=within.specimen_id,
        arterial=arterial,
        own=(within.hadm_id == within.own).fill_null(False),
    )


def _given(tables: Tables, stays: ibis.Table) -> ibis.Table:
    """Rates of drugs; milligrams are converted for norepinephrine alone."""
    rows = tables["inputevents"]
    kept = rows.itemid.isin(_GIVEN) & rows.stay.isin(stays.stay) & rows.rate.notnull()
    converted, _ = in_micrograms(rows)
    rate = (rows.itemid == NOREPINEPHRINE).ifelse(converted, rows.rate)
    return rows.filter(kept & rows.starttime.notnull() & rows.endtime.notnull()).select(
        "stay",
        itemid=rows.itemid.cast("int32"),
        start=rows.starttime,
        end=rows.endtime,
        rate=rate,
    )


def _urine(tables: Tables, stays: ibis.Table) -> ibis.Table:
    """Urine by time; what was put in to rinse is taken off."""
    rows = tables["outputevents"]
    kept = rows.itemid.isin(_PASSED) & rows.stay.isin(stays.stay)
    known = rows.filter(kept & rows.charttime.notnull())
    into = (known.itemid == IRRIGANT) & (known.value > 0)
    signed = known.mutate(volume=into.ifelse(-known.value, known.value))
    return signed.group_by("stay", t=signed.charttime).aggregate(volume=signed.volume.sum())


def in_micrograms(rows: ibis.Table) -> tuple[ir.Value, ir.Value]:
    """Rate and unit, milligrams as micrograms.

    With a weight of 1 kg the rate was meant in micrograms and its unit is a slip.
    """
    milligrams = (rows.rateuom == "mg/kg/min").fill_null(False)
    slip = (rows.patientweight == 1).fill_null(False)
    rate = ibis.cases((milligrams & ~slip, rows.rate * 1000), else_=rows.rate)
    return rate, milligrams.ifelse("mcg/kg/min", rows.rateuom)
