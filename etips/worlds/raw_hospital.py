"""What simulated hospitals of every MIMIC write alike: admissions, stays, units and flawed rows."""

from collections.abc import Mapping

import numpy as np
import polars as pl

from etips.cohorts.mimic.items import POUND_WEIGHT_ITEM, Items
from etips.cohorts.mimic.unit_audit import EXPECTED
from etips.worlds.mimic3_stays import HOUR, Hospital

_WITHOUT_FLAWS = ("patients", "admissions", "icustays", "d_items")


def admissions(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    """When each admission ended, some hours after its last stay."""
    leaves = stays.start + (stays.hours + rng.integers(2, 100, stays.stay.size)) * HOUR
    frame = pl.DataFrame(
        {"subject_id": stays.subject, "hadm_id": stays.admission, "dischtime": leaves}
    )
    return frame.group_by("subject_id", "hadm_id", maintain_order=True).agg(
        pl.col("dischtime").max()
    )


def icustays(stays: Hospital, *, stay_column: str) -> pl.DataFrame:
    """Whose stay it is, and from when to when."""
    return pl.DataFrame(
        {
            "subject_id": stays.subject,
            "hadm_id": stays.admission,
            stay_column: stays.stay,
            "intime": stays.start,
            "outtime": stays.start + stays.hours * HOUR,
        }
    )


def state_units(
    rng: np.random.Generator, table: str, frame: pl.DataFrame, items: Items
) -> pl.DataFrame:
    """State units as charted: those that a feature is expected in, and none in some rows."""
    if table == "outputevents":
        return frame.with_columns(valueuom=pl.lit("mL"))
    if table not in ("chartevents", "labevents"):
        return frame
    features = items.labs if table == "labevents" else items.vitals | items.chart_labs
    units = {item: next(iter(EXPECTED.get(name, ())), None) for item, name in features.items()}
    units[POUND_WEIGHT_ITEM] = "lbs"
    unit = pl.col("itemid").replace_strict(units, default=None, return_dtype=pl.String)
    stated = pl.Series(rng.random(frame.height) > 0.3)
    return frame.with_columns(valueuom=pl.when(stated).then(unit))


def as_written(
    rng: np.random.Generator, table: str, frame: pl.DataFrame, types: Mapping[str, str]
) -> pl.DataFrame:
    """Seconds as times and the columns of the table; events in any order, one in 100 repeated."""
    frame = frame.with_columns(
        pl.from_epoch(name, time_unit="s").cast(pl.Datetime("us"))
        for name, kind in types.items()
        if kind == "timestamp"
    )
    if table in _WITHOUT_FLAWS:
        return frame.select(*types)
    flawed = frame[rng.permutation(frame.height)]
    repeats = flawed[rng.choice(flawed.height, flawed.height // 100, replace=False)]
    return pl.concat([flawed, repeats]).select(*types)
