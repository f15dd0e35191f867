"""What a simulated hospital of the MIMIC-IV shape charts, measures, prescribes and infuses."""

from typing import Final

import numpy as np
import polars as pl

from etips.worlds import mimic3_charts
from etips.worlds.mimic3_stays import HOUR, Hospital

_DEVICE, _VERBAL, _MODE, _HAMILTON = 226732, 223900, 223849, 229314
# As stored, blanks at the end and all; "None" is a device, and so no missing value.
_DEVICES: Final = (
    "None", "Nasal cannula", "Face tent", "Endotracheal tube", "Non-rebreather", "Other",
    "Bipap mask ", "CPAP mask ", "Venti mask ", "Trach mask ", "Medium conc mask ",
    "High flow nasal cannula", "",
)  # fmt: skip
_MODES: Final = {
    _MODE: ("CMV/ASSIST/AutoFlow", "PSV/SBT", "Standby"),
    _HAMILTON: ("SPONT", "APV (cmv)", "Standby", "Ambient", "NIV-ST"),
}
_GASES: Final = (50820, 50821, 50818, 50802)
_SPECIMEN: Final = 52033
_SPECIMENS: Final = ("ART.", "VEN.", "MIX.", "CENTRAL VENOUS.", "")
_SHARES: Final = (0.79, 0.15, 0.02, 0.02, 0.02)
BLANK: Final = "___"
"""What stands in `value` where it was taken out; the number beside it is right."""

_VASOPRESSORS: Final = (
    (221906, "mcg/kg/min", 0.15), (221749, "mcg/kg/min", 1.0), (222315, "units/hour", 2.4),
    (221906, "mcg/min", 12.0), (221662, "mcg/kg/min", 6.0), (229617, "mcg/kg/min", 0.1),
    (229630, "mcg/kg/min", 1.0), (229631, "mcg/kg/min", 1.0), (229632, "mcg/kg/min", 1.0),
    (221906, "mg/kg/min", 0.00015), (221289, "mcg/kg/min", 0.1), (222315, "units/min", 0.04),
)  # fmt: skip
_FLUIDS: Final = (225158, 225943, 225828, 226089, 220862, 225823, 220949)
# Drug, codes, route, type: on the list, off it, two codes in one cell, a diluent, a false friend.
_PRESCRIPTIONS: Final = (
    ("Vancomycin", "043952", "IV", "MAIN"), ("Ceftriaxone", "009162", "IV", "MAIN"),
    ("Ciprofloxacin", "009509 009510", "PO/NG", "MAIN"), ("Meropenem", "", "IV", "MAIN"),
    ("Iso-Osmotic Dextrose", "001972", "IV", "BASE"), ("Penicillamine", "002542", "PO", "MAIN"),
    ("Heparin", "006549", "SC", "MAIN"), ("Erythromycin Ophth", "009251", "BOTH EYES", "MAIN"),
)  # fmt: skip


def chartevents(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    """Everything charted by hour, in one system; every row has its stay."""
    rows = mimic3_charts.chartevents(rng, stays).rename({"icustay_id": "stay_id"}).drop("error")
    rows = rows.drop_nulls("stay_id").select("stay_id", "charttime", "itemid", "value", "valuenum")
    rows = pl.concat([rows.filter(pl.col("itemid") != _DEVICE), *_texts(rng, rows)])
    tube = pl.Series(rng.random(rows.height) < 0.9)
    untestable = (pl.col("itemid") == _VERBAL) & (pl.col("valuenum") == 1) & tube
    return rows.with_columns(
        value=pl.when(untestable).then(pl.lit("No Response-ETT")).otherwise(pl.col("value"))
    )


def _texts(rng: np.random.Generator, rows: pl.DataFrame) -> list[pl.DataFrame]:
    """Devices, a few of them two at a time, and modes of ventilators."""
    devices = rows.filter(pl.col("itemid") == _DEVICE)
    second = devices.filter(pl.Series(rng.random(devices.height) < 0.04))
    both = pl.concat([devices, second])
    parts = [both.with_columns(value=pl.Series(rng.choice(np.array(_DEVICES), both.height)))]
    for item, texts in _MODES.items():
        own = devices.filter(pl.Series(rng.random(devices.height) < 0.1))
        text = pl.Series(rng.choice(np.array(texts), own.height), dtype=pl.String)
        parts.append(own.with_columns(value=text, itemid=pl.lit(item, pl.Int64)))
    return parts


def labevents(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    """Laboratory results: by patient and specimen, a quarter of them without an admission."""
    owner = pl.DataFrame({"hadm_id": stays.admission, "subject_id": stays.subject}).unique(
        "hadm_id", maintain_order=True
    )
    rows = mimic3_charts.labevents(rng, stays).join(
        owner, on="hadm_id", how="left", maintain_order="left"
    )
    first = int(stays.stay[0]) * 1000
    # Gases are drawn by themselves, apart from what else is drawn at the time.
    drawn = pl.struct("hadm_id", "charttime", pl.col("itemid").is_in(_GASES))
    rows = rows.with_columns(specimen_id=first + drawn.rank("dense").cast(pl.Int64))
    blank = pl.Series(rng.random(rows.height) < 0.06)
    number = pl.col("valuenum").cast(pl.String)
    rows = rows.with_columns(
        value=pl.when(blank | pl.col("valuenum").is_null()).then(pl.lit(BLANK)).otherwise(number)
    )
    rows = pl.concat([rows, _specimens(rng, rows).select(rows.columns)])
    stray = (rows["specimen_id"] * 2_654_435_761 % 100) < 26  # a specimen is with or without
    return rows.with_columns(hadm_id=pl.when(~stray).then(pl.col("hadm_id")))


def _specimens(rng: np.random.Generator, rows: pl.DataFrame) -> pl.DataFrame:
    """What each gas was drawn from; for some nobody says."""
    gases = rows.filter(pl.col("itemid").is_in(_GASES)).unique("specimen_id", maintain_order=True)
    kind = pl.Series(rng.choice(np.array(_SPECIMENS), gases.height, p=_SHARES), dtype=pl.String)
    told = gases.with_columns(
        value=kind, itemid=pl.lit(_SPECIMEN, pl.Int64), valuenum=pl.lit(None, pl.Float64)
    )
    return told.filter(pl.col("value") != "")


def prescriptions(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    """Orders by the hour; none carries a stay, and some end before they begin."""
    chosen = rng.choice(stays.stay.size, 5 * stays.stay.size)
    drug = rng.integers(0, len(_PRESCRIPTIONS), chosen.size)
    names, codes, routes, kinds = (
        np.array(column)[drug] for column in zip(*_PRESCRIPTIONS, strict=True)
    )
    start = stays.start[chosen] // HOUR * HOUR + rng.integers(-30, 72, chosen.size) * HOUR
    frame = pl.DataFrame(
        {
            "subject_id": stays.subject[chosen],
            "hadm_id": stays.admission[chosen],
            "pharmacy_id": int(stays.stay[0]) * 10 + rng.permutation(chosen.size),
            "starttime": start,
            "stoptime": start + rng.integers(-6, 120, chosen.size) * HOUR,
            "drug": names,
            "gsn": codes,
            "route": routes,
            "drug_type": kinds,
        }
    )
    silent = pl.Series(rng.random(chosen.size) < 0.01)
    return frame.with_columns(
        pl.col("gsn").replace("", None), route=pl.when(~silent).then(pl.col("route"))
    )


def inputevents(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    """Infusions and boluses; a rate in mg/kg/min may stand beside a weight of 1."""
    owner, hour = stays.every_hour()
    chosen = rng.random(owner.size) < 0.3
    owner, hour = owner[chosen], hour[chosen]
    n = owner.size
    start = stays.start[owner] // HOUR * HOUR + hour * HOUR
    length = rng.integers(1, 10, n)
    pressor = (stays.severity[owner] > 0.3) & (rng.random(n) < 0.4)
    kind = rng.integers(0, len(_VASOPRESSORS), n)
    items, units, doses = (np.array(column)[kind] for column in zip(*_VASOPRESSORS, strict=True))
    bolus = ~pressor & (rng.random(n) < 0.3)
    milligrams = pressor & (units == "mg/kg/min")
    one = milligrams & (rng.random(n) < 0.5)  # then the rate is really in mcg/kg/min
    speed = np.where(pressor, np.where(one, 0.15, doses), 100.0) * rng.lognormal(0, 0.5, n)
    speed = np.where(milligrams & ~one, np.round(speed, 7), np.round(speed, 4))
    litres = ~pressor & (rng.random(n) < 0.02)
    amount = np.where(pressor, 5.0, np.round(np.where(bolus, 100.0, speed) * length, 3))
    frame = pl.DataFrame(
        {
            "stay_id": stays.stay[owner],
            "starttime": start,
            "endtime": start + length * HOUR,
            "itemid": np.where(pressor, items, rng.choice(_FLUIDS, n)),
            "amount": np.where(litres, amount / 1000, amount),
            "amountuom": np.where(pressor, "mg", np.where(litres, "L", "ml")),
            "rate": np.where(bolus, np.nan, speed),
            "rateuom": np.where(pressor, units, "mL/hour"),
            "statusdescription": rng.choice(
                ["FinishedRunning", "ChangeDose/Rate", "Paused", "Stopped", "Bolus"], n
            ),
            "patientweight": np.where(one, 1.0, np.round(82 + 18 * rng.normal(size=n), 1)),
        }
    )
    return frame.with_columns(pl.col("rate").fill_nan(None))
