"""A simulated hospital that charts as MIMIC-III does.

Plausible, not true: both charting systems, the items the cohort reads, and the flaws that a cohort
builder has to survive (outliers, repeats, gaps, mixed units, missing stay ids, rewritten and
erroneous rows). Nothing in it comes from a patient.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
import polars as pl

from etips.cohorts.mimic.items import read_list, select_items
from etips.cohorts.mimic.mimic3 import CLEAN, Mimic3Extraction
from etips.worlds.mimic3_charts import chartevents, labevents
from etips.worlds.mimic3_stays import BLOCK_STAYS, DAY, HOUR, Hospital, simulate_stays
from etips.worlds.raw_hospital import admissions, as_written, icustays, state_units

# Drug, GSN code, route: on the scripts' list, off it, and a false friend of name matching.
_PRESCRIPTIONS: Final = (
    ("Ciprofloxacin", "009509", "PO"), ("Vancomycin", "043952", "IV"),
    ("Ceftriaxone", "009162", "IV"), ("Penicillamine", "002542", "PO"),
    ("Heparin", "006549", "SC"), ("Erythromycin Ophth", "009251", "OU"),
)  # fmt: skip
_VASOPRESSORS_MV: Final = (
    (221906, "mcg/kg/min", 0.15), (221749, "mcg/kg/min", 1.0), (222315, "units/hour", 2.4),
    (221906, "mcg/min", 12.0), (221662, "mcg/kg/min", 6.0), (221289, "mg/hour", 1.0),
    (222315, "units/min", 0.2),
)  # fmt: skip
_VASOPRESSORS_CV: Final = (
    (30120, "mcgkgmin", 0.15), (30128, "mcgkgmin", 1.0), (30051, "Umin", 0.04),
    (30127, "mcgmin", 120.0), (30043, "mcgkgmin", 6.0), (30051, "Uhr", 2.4),
    (30051, "Umin", 0.2),
)  # fmt: skip
_FLUIDS_MV: Final = (225158, 225943, 225828, 226089, 220862, 225823)
_FLUIDS_CV: Final = (30018, 30021, 30063, 30001, 30020, 30009, 30006)


def simulate_table(table: str, *, seed: int, block: int, n_stays: int) -> pl.DataFrame:
    """One block of one table; every table of a block describes the same stays."""
    stays = simulate_stays(
        np.random.default_rng([seed, block]), first=block * BLOCK_STAYS, n_stays=n_stays
    )
    rng = np.random.default_rng([seed, block, list(_TABLES).index(table)])
    frame = _TABLES[table](rng, stays)
    if table in ("inputevents_mv", "inputevents_cv"):
        frame = frame.with_columns(amountuom=pl.lit("ml"))
    frame = state_units(rng, table, frame, select_items(read_list("mimic3"), CLEAN.reading))
    return as_written(rng, table, frame, Mimic3Extraction.layout.tables[table])


def _patients(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    frame = pl.DataFrame(
        {"subject_id": stays.subject, "dob": stays.birth, "dod": stays.death}
    ).with_columns(pl.col("dod").replace(0, None))
    people = frame.group_by("subject_id", maintain_order=True).agg(
        pl.col("dob").first(), pl.col("dod").max()
    )
    gender = rng.choice(["M", "F"], people.height)
    return people.with_columns(gender=pl.Series(gender))


def _icustays(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    del rng
    return icustays(stays, stay_column="icustay_id")


def _microbiology(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    chosen = rng.choice(stays.stay.size, 3 * stays.stay.size)
    t = stays.start[chosen] + rng.integers(-30, 60, chosen.size) * HOUR
    dated = rng.random(chosen.size) < 0.1
    frame = pl.DataFrame(
        {
            "subject_id": stays.subject[chosen],
            "hadm_id": stays.admission[chosen],
            "charttime": t,
            "chartdate": t // DAY * DAY,
        }
    )
    return frame.with_columns(charttime=pl.when(~pl.Series(dated)).then(pl.col("charttime")))


def _prescriptions(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    chosen = rng.choice(stays.stay.size, 4 * stays.stay.size)
    drug = rng.integers(0, len(_PRESCRIPTIONS), chosen.size)
    names, codes, routes = (np.array(column)[drug] for column in zip(*_PRESCRIPTIONS, strict=True))
    date = (stays.start[chosen] + rng.integers(-30, 72, chosen.size) * HOUR) // DAY * DAY
    frame = pl.DataFrame(
        {
            "row_id": stays.stay[0] * 10 + rng.permutation(chosen.size),
            "hadm_id": stays.admission[chosen],
            "icustay_id": stays.stay[chosen],
            "startdate": date,
            "gsn": codes,
            "drug": names,
            "route": routes,
            "drug_type": "MAIN",
        }
    )
    own = pl.Series(rng.random(chosen.size) > 0.38)
    return frame.with_columns(icustay_id=pl.when(own).then(pl.col("icustay_id")))


def _inputevents_mv(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    owner, hour = stays.every_hour()
    chosen = stays.metavision[owner] & (rng.random(owner.size) < 0.3)
    owner, hour = owner[chosen], hour[chosen]
    n = owner.size
    start = stays.start[owner] // HOUR * HOUR + hour * HOUR
    length = rng.integers(1, 10, n)
    pressor = (stays.severity[owner] > 0.3) & (rng.random(n) < 0.4)
    kind = rng.integers(0, len(_VASOPRESSORS_MV), n)
    items, units, doses = (np.array(column)[kind] for column in zip(*_VASOPRESSORS_MV, strict=True))
    bolus = ~pressor & (rng.random(n) < 0.3)
    speed = np.round(np.where(pressor, doses, 100.0) * rng.lognormal(0, 0.5, n), 4)
    frame = pl.DataFrame(
        {
            "icustay_id": stays.stay[owner],
            "starttime": start,
            "endtime": start + length * HOUR,
            "itemid": np.where(pressor, items, rng.choice(_FLUIDS_MV, n)),
            "amount": np.where(pressor, 5.0, np.round(speed * length, 3)),
            "rate": np.where(bolus, np.nan, speed),
            "rateuom": np.where(pressor, units, "mL/hour"),
            "statusdescription": rng.choice(["FinishedRunning", "Rewritten"], n, p=[0.8, 0.2]),
        }
    )
    return frame.with_columns(pl.col("rate").fill_nan(None))


def _inputevents_cv(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    owner, hour = stays.every_hour()
    chosen = ~stays.metavision[owner] & (rng.random(owner.size) < 0.6)
    owner, hour = owner[chosen], hour[chosen]
    n = owner.size
    pressor = (stays.severity[owner] > 0.3) & (rng.random(n) < 0.4)
    kind = rng.integers(0, len(_VASOPRESSORS_CV), n)
    items, units, doses = (np.array(column)[kind] for column in zip(*_VASOPRESSORS_CV, strict=True))
    rate = np.where(pressor, np.round(doses * rng.lognormal(0, 0.5, n), 3), np.nan)
    fluid = np.where(hour == 0, 30054, rng.choice(_FLUIDS_CV, n))
    frame = pl.DataFrame(
        {
            "icustay_id": stays.stay[owner],
            "charttime": stays.start[owner] // HOUR * HOUR + hour * HOUR,
            "itemid": np.where(pressor, items, fluid),
            "amount": np.round(rng.lognormal(np.log(60), 0.9, n), 1),
            "rate": rate,
            "rateuom": np.where(pressor, units, ""),
        }
    )
    return frame.with_columns(pl.col("rate").fill_nan(None), pl.col("rateuom").replace("", None))


def _outputevents(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    owner, hour = stays.every_hour()
    chosen = rng.random(owner.size) < 0.35
    owner, hour = owner[chosen], hour[chosen]
    item = np.where(stays.metavision[owner], 226559, 40055)
    item = np.where(rng.random(owner.size) < 0.05, 227510, item)
    item = np.where(rng.random(owner.size) < 0.02, 227488, item)  # irrigant that went in
    volume = np.round(rng.lognormal(np.log(90) - 0.4 * stays.severity[owner], 0.7), 0)
    volume = np.where(rng.random(owner.size) < 0.001, 13_000.0, volume)  # a slip of the pen
    return pl.DataFrame(
        {
            "icustay_id": stays.stay[owner],
            "charttime": stays.start[owner] // HOUR * HOUR + hour * HOUR,
            "itemid": np.where(hour == 0, 40060, item),
            "value": volume,
        }
    )


def _procedures(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    chosen = np.flatnonzero(stays.metavision & (stays.severity > 0))
    item = rng.choice([225401, 225792, 227194, 225454], chosen.size)
    start = stays.start[chosen] + rng.integers(0, 20, chosen.size) * HOUR
    return pl.DataFrame(
        {
            "icustay_id": stays.stay[chosen],
            "starttime": start,
            "endtime": start + rng.integers(1, 40, chosen.size) * HOUR,
            "itemid": item,
        }
    )


_TABLES: Final[dict[str, Callable[[np.random.Generator, Hospital], pl.DataFrame]]] = {
    "patients": _patients,
    "admissions": admissions,
    "icustays": _icustays,
    "chartevents": chartevents,
    "labevents": labevents,
    "microbiologyevents": _microbiology,
    "prescriptions": _prescriptions,
    "inputevents_mv": _inputevents_mv,
    "inputevents_cv": _inputevents_cv,
    "outputevents": _outputevents,
    "procedureevents_mv": _procedures,
}
