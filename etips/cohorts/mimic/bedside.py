"""Raw rows of some stays as events that the rules know (sections 4.2 and 8)."""

from collections.abc import Mapping
from typing import Final

import polars as pl

from etips.cohorts.engines.store import Store, require_finite
from etips.cohorts.mimic.items import (
    ARTERIAL_FEATURES,
    EXTUBATION_PROCEDURES,
    INVASIVE_VENTILATION_ITEM,
    IRRIGANT_IN_ITEM,
    PREADMISSION_URINE_ITEMS,
    TONICITY,
    Items,
)
from etips.cohorts.sepsis3.doses import VASOPRESSIN_LIMIT, rounded
from etips.cohorts.sepsis3.events import (
    CONCEPT,
    PER_KG,
    PER_MINUTE,
    UNITS_PER_HOUR,
    UNITS_PER_MINUTE,
    Events,
)
from etips.cohorts.sepsis3.rules import Rules

SPELLINGS: Final = {
    "mcg/kg/min": PER_KG, "mcgkgmin": PER_KG,
    "mcg/min": PER_MINUTE, "mcgmin": PER_MINUTE,
    "units/min": UNITS_PER_MINUTE, "Umin": UNITS_PER_MINUTE,
    "units/hour": UNITS_PER_HOUR, "Uhr": UNITS_PER_HOUR,
}  # fmt: skip
"""Units of a rate, as MetaVision and CareVue spell them."""
Frames = Mapping[str, pl.DataFrame]
"""Raw rows of some stays by what they are kept as; every frame has stay and times in seconds.

`arterial` says whether a specimen is said to be so, where the row is one that says it;
`infusions_cv` is of a charting system without ends. Either that or `procedures` is empty where
there is none. What only the audit of units looks at stays on disk.
"""
_COLUMNS: Final = {
    "chart": ("stay", "itemid", "t", "number", "device", "has_text", "ventilated", "extubated"),
    "labs": ("stay", "itemid", "t", "number", "specimen", "arterial"),
    "infusions_mv": (
        "stay", "amount", "rate", "rateuom", "statusdescription", "itemid", "start", '"end"',
    ),
    "infusions_cv": ("stay", "amount", "rate", "rateuom", "itemid", "t"),
    "urine": ("stay", "itemid", "t", "amount"),
    "procedures": ("stay", "itemid", "start", '"end"'),
}  # fmt: skip
_NOT_READ: Final[dict[str, dict[str, type[pl.DataType]]]] = {
    "infusions_cv": {
        "stay": pl.Int64, "amount": pl.Float64, "rate": pl.Float64, "rateuom": pl.String,
        "itemid": pl.Int32, "t": pl.Int64,
    },
    "procedures": dict.fromkeys(("stay", "start", "end", "itemid"), pl.Int64),
}  # fmt: skip
_LABORATORY: Final = 1_000_000
"""Priority of a laboratory result above that of any charted row; within either, by item."""
_IS_REWRITTEN: Final = pl.col("statusdescription").fill_null("") == "Rewritten"


def read_frames(kept: Store, first: int, last: int, tables: Mapping[str, str]) -> Frames:
    """Read the kept rows of the stays first..last; `tables` has the raw table of each kept one."""
    frames = {name: pl.DataFrame(schema=schema) for name, schema in _NOT_READ.items()}
    for name, table in tables.items():
        frames[name] = kept.rows(name, columns=_COLUMNS[name], between=("stay", first, last))
        require_finite(table, frames[name])
    return frames


def read_events(frames: Frames, items: Items, rules: Rules, *, drop_rewritten: bool) -> Events:
    """What happened to some stays.

    With `drop_rewritten`, fluids that were written anew do not count (oddity 6, corrected).
    """
    measured, ventilation = measurements(frames, items)
    boluses, infusions = fluids(frames, items, drop_rewritten=drop_rewritten)
    before = [
        frames[system].filter(pl.col("itemid").is_in(items.preadmission_fluids))
        for system in ("infusions_mv", "infusions_cv")
    ]
    passed, early = frames["urine"], pl.col("itemid").is_in(PREADMISSION_URINE_ITEMS)
    into = pl.col("itemid") == IRRIGANT_IN_ITEM  # irrigant that went in is taken off
    volume = pl.when(into).then(-pl.col("amount")).otherwise(pl.col("amount"))
    return Events(
        measurements=measured,
        ventilation=ventilation,
        vasopressors=vasopressors(frames, items, rules),
        boluses=boluses,
        infusions=infusions,
        # MetaVision's sum if any, otherwise CareVue's
        fluid_before=pl.concat([_summed(rows) for rows in before]).unique(
            "stay", keep="first", maintain_order=True
        ),
        urine=passed.filter(pl.col("itemid").is_in(items.urine)).select("stay", "t", volume=volume),
        urine_before=_summed(passed.filter(early).unique()),
    )


def _summed(rows: pl.DataFrame) -> pl.DataFrame:
    """Amounts of a stay added up: stay, volume."""
    amounts = rows.drop_nulls("amount").group_by("stay")
    return amounts.agg(volume=pl.col("amount").sort().sum())  # sorted: the same in any row order


def measurements(frames: Frames, items: Items) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Vitals, labs, ventilation and extubation, and periods of invasive ventilation.

    The order of several at one time is chartevents before labevents, then item (section 8). Items
    of ventilation have one priority, so that any row that says ventilated counts.

    Returns:
        stay, t, concept, priority, value; and stay, start, end.
    """
    chart, procedures = frames["chart"], frames["procedures"]
    written = chart.filter("has_text")
    vitals = written.join(_named(items.vitals, concept=CONCEPT), on="itemid")
    chart_labs = chart.join(_named(items.chart_labs, concept=CONCEPT), on="itemid")
    results = _arterial(frames["labs"], items).join(
        _named(items.labs, concept=CONCEPT), on="itemid"
    )
    of_ventilation = written.filter(pl.col("itemid").is_in(items.ventilation))
    if not items.procedure_ventilation:
        procedures = procedures.clear()
    ended = procedures.filter(pl.col("itemid").is_in(EXTUBATION_PROCEDURES)).rename({"start": "t"})
    item, number = pl.col("itemid").cast(pl.Int32), pl.col("number")
    flags = [
        (of_ventilation, "mechvent", pl.col("ventilated")),
        (of_ventilation, "extubated", pl.col("extubated")),
        (ended, "extubated", pl.lit(True)),
    ]
    parts = [
        vitals.with_columns(priority=item, value=pl.coalesce("device", "number")),
        chart_labs.drop_nulls("number").with_columns(priority=item, value=number),
        results.with_columns(priority=item + _LABORATORY, value=number),
        *(
            rows.with_columns(
                concept=pl.lit(concept, CONCEPT),
                priority=pl.lit(0, pl.Int32),
                value=flag.cast(pl.Float64),
            )
            for rows, concept, flag in flags
        ),
    ]
    invasive = procedures.filter(pl.col("itemid") == INVASIVE_VENTILATION_ITEM)
    columns = ("stay", "t", "concept", "priority", "value")
    periods = invasive.select("stay", "start", "end")
    return pl.concat([part.select(columns) for part in parts]), periods


def _arterial(labs: pl.DataFrame, items: Items) -> pl.DataFrame:
    """Results without gases of a specimen that is said to be of another kind than arterial.

    Where specimens have no number, results of one time are of one specimen.
    """
    labs = labs.with_columns(specimen=pl.coalesce("specimen", -pl.col("t")))
    said = labs.drop_nulls("arterial").group_by("stay", "specimen").agg(pl.col("arterial").any())
    other = said.filter(~pl.col("arterial")).select("stay", "specimen")
    gases = [item for item, feature in items.labs.items() if feature in ARTERIAL_FEATURES]
    is_gas = pl.col("itemid").is_in(gases)
    kept = labs.filter(is_gas).join(other, on=["stay", "specimen"], how="anti")
    return pl.concat([labs.filter(~is_gas), kept])


def _named(items: Mapping[int, str], **column: pl.DataType | pl.Enum) -> pl.DataFrame:
    """What each item is, in a column of a name and a type."""
    ((name, kind),) = column.items()
    return pl.DataFrame(
        {
            "itemid": pl.Series(list(items), dtype=pl.Int32),
            name: pl.Series(list(items.values()), dtype=kind),
        }
    )


def vasopressors(frames: Frames, items: Items, rules: Rules) -> pl.DataFrame:
    """Vasopressor rates of both systems: stay, start, end (null in CareVue), drug, rate, unit."""
    drugs = _named(items.vasopressors, drug=pl.String())
    unit = pl.col("rateuom").replace_strict(SPELLINGS, default=None, return_dtype=pl.String)
    metavision, carevue = (
        frames[system].join(drugs, on="itemid").drop_nulls("rate").with_columns(unit=unit)
        for system in ("infusions_mv", "infusions_cv")
    )
    metavision = metavision.filter(~_IS_REWRITTEN).drop_nulls(["start", "end"])
    carevue = carevue.drop_nulls("t").rename({"t": "start"})
    carevue = carevue.with_columns(end=pl.lit(None, pl.Int64))
    if not rules.vasopressin_as_charted:  # the scripts lose this very rate there
        is_vasopressin = (pl.col("drug") == "vasopressin") & (pl.col("unit") == UNITS_PER_MINUTE)
        lost = is_vasopressin & (pl.col("rate") == VASOPRESSIN_LIMIT)
        carevue = carevue.filter(~lost.fill_null(False))
    columns = ("stay", "start", "end", "drug", "rate", "unit")
    return pl.concat([part.select(columns) for part in (metavision, carevue)])


def fluids(
    frames: Frames, items: Items, *, drop_rewritten: bool
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Fluids as isotonic volumes.

    A row of MetaVision without a rate is a bolus, one of CareVue always is.

    Returns:
        Boluses: stay, t, volume. Infusions: stay, start, end, rate in mL/h.
    """
    is_fluid = pl.col("itemid").is_in(items.fluids) & pl.col("amount").is_not_null()
    given = frames["infusions_mv"].filter(is_fluid & pl.col("start").is_not_null())
    if drop_rewritten:
        given = given.filter(~_IS_REWRITTEN)
    charted = frames["infusions_cv"].filter(is_fluid & pl.col("t").is_not_null())
    factor = pl.col("itemid").replace_strict(TONICITY, default=1.0, return_dtype=pl.Float64)
    volume = rounded(pl.col("amount") * factor)
    amount, rate = rounded(pl.col("amount")), rounded(pl.col("rate"))
    normalised = pl.when(amount == 0).then(0.0).otherwise(volume * rate / amount)
    runs = pl.col("rate").is_not_null()
    boluses = [
        given.filter(~runs).select("stay", t="start", volume=volume),
        charted.select("stay", "t", volume=volume),
    ]
    infusions = given.filter(runs).select("stay", "start", "end", rate=normalised)
    return pl.concat(boluses), infusions
