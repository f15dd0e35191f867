"""A simulated hospital that charts as MIMIC-III does.

Plausible, not true: both charting systems, the items the cohort reads, and the flaws that a cohort
builder has to survive (outliers, repeats, gaps, mixed units, missing stay ids, rewritten and
erroneous rows). Nothing in it comes from a patient.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from etips.cohorts.mimic3 import concepts
from etips.cohorts.mimic3.switches import CLEAN
from etips.cohorts.mimic3.tables import readable
from etips.cohorts.mimic3.units import EXPECTED

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BLOCK_STAYS: Final = 500
_HOUR: Final = 3600
_DAY: Final = 24 * _HOUR
_EPOCH_2100: Final = 4_102_444_800

# Charted hourly: CareVue item, MetaVision item, mean, effect of severity, spread, share of hours,
# decimals. Both items of a quantity may be in other units, so each has its own line.
_VITALS: Final = (
    (211, 220045, 85, 10, 8, 0.95, 0), (455, 220179, 120, -9, 12, 0.9, 0),
    (456, 220181, 80, -7, 9, 0.9, 0), (8441, None, 60, -5, 8, 0.9, 0),
    (6, 220050, 118, -9, 12, 0.2, 0), (None, 220180, 61, -5, 8, 0.9, 0),
    (618, 220210, 19, 3, 4, 0.9, 0), (646, 220277, 97, -1, 2, 0.9, 0),
    (678, 223761, 98.4, 0.5, 1.0, 0.25, 1), (676, 223762, 37.0, 0.3, 0.6, 0.03, 1),
    (581, 224639, 82, 0, 18, 0.04, 1), (198, None, 13, -2, 1.5, 0.25, 0),
    (None, 228096, -0.5, -1, 1.2, 0.25, 0), (None, 220739, 3.4, -0.6, 0.6, 0.25, 0),
    (None, 223900, 4.0, -1, 0.8, 0.25, 0), (None, 223901, 5.4, -0.7, 0.7, 0.25, 0),
    (190, None, 0.45, 0.05, 0.08, 0.15, 2), (None, 223835, 48, 6, 9, 0.15, 0),
    (470, 223834, 4, 2, 2, 0.1, 0), (113, 220074, 10, 1, 4, 0.1, 0),
)  # fmt: skip
_CHART_LABS: Final = (
    (829, 227442, 4.1, 0.1, 0.5, 0.08, 1), (837, 220645, 139, 0, 4, 0.08, 0),
    (788, 220602, 104, 0, 5, 0.08, 0), (811, 220621, 138, 8, 40, 0.08, 0),
    (791, 220615, 1.3, 0.5, 0.3, 0.08, 1), (781, 225624, 26, 8, 8, 0.08, 0),
    (807, 225664, 140, 8, 40, 0.15, 0), (848, 225690, 1.4, 0.8, 0.5, 0.02, 1),
    (828, 227457, 210, -35, 60, 0.05, 0), (1542, 220546, 12, 2, 4, 0.05, 1),
    (779, 220224, 115, -12, 30, 0.04, 0), (778, 220235, 41, 1, 8, 0.04, 0),
)  # fmt: skip
_LABS: Final = (
    (50971, 4.1, 0.1, 0.5, 1), (50983, 139, 0, 4, 0), (50902, 104, 0, 5, 0),
    (50931, 138, 8, 40, 0), (51006, 26, 8, 8, 0), (50912, 1.3, 0.5, 0.3, 1),
    (50960, 2.0, 0, 0.3, 1), (50893, 8.4, -0.1, 0.6, 1), (51222, 10.4, -0.3, 1.4, 1),
    (51221, 31, -1, 4, 1), (51301, 12, 2, 4, 1), (51265, 210, -35, 60, 0),
    (51275, 36, 4, 9, 1), (51274, 15, 1, 3, 1), (51237, 1.4, 0.2, 0.3, 1),
    (50882, 24, -1, 4, 0), (50820, 7.38, -0.03, 0.05, 2), (50821, 115, -12, 30, 0),
    (50818, 41, 1, 8, 0), (50802, 0, -2, 3, 0), (50813, 2.0, 0.8, 0.7, 1),
    (50878, 60, 20, 30, 0), (50861, 50, 18, 25, 0), (50885, 1.4, 0.8, 0.5, 1),
    (50862, 3.0, -0.2, 0.4, 1), (50808, 1.13, 0, 0.08, 2), (50804, 25, -1, 5, 0),
)  # fmt: skip
_DEVICES: Final = ("None", "Nasal Cannula", "Face Tent", "Ventilator", "Non-Rebreather", "Other")
# Drug, GSN code, route: on the scripts' list, off it, and a false friend of name matching.
_PRESCRIPTIONS: Final = (
    ("Ciprofloxacin", "009509", "PO"), ("Vancomycin", "043952", "IV"),
    ("Ceftriaxone", "009162", "IV"), ("Penicillamine", "002542", "PO"),
    ("Heparin", "006549", "SC"), ("Erythromycin Ophth", "009251", "OU"),
)  # fmt: skip
_VASOPRESSORS_MV: Final = (
    (221906, "mcg/kg/min", 0.15), (221749, "mcg/kg/min", 1.0), (222315, "units/hour", 2.4),
    (221906, "mcg/min", 12.0), (221662, "mcg/kg/min", 6.0), (221289, "mg/hour", 1.0),
)  # fmt: skip
_VASOPRESSORS_CV: Final = (
    (30120, "mcgkgmin", 0.15), (30128, "mcgkgmin", 1.0), (30051, "Umin", 0.04),
    (30127, "mcgmin", 120.0), (30043, "mcgkgmin", 6.0), (30051, "Uhr", 2.4),
)  # fmt: skip
_FLUIDS_MV: Final = (225158, 225943, 225828, 226089, 220862, 225823)
_FLUIDS_CV: Final = (30018, 30021, 30063, 30001, 30020, 30009, 30006)


@dataclass(frozen=True)
class Hospital:
    """Stays of one block: who, when, how ill.

    Attributes:
        stay: icustay_id, shape (n,), as all others.
        subject: subject_id; some patients return.
        admission: hadm_id; some stays share one.
        start: Seconds since 1970 of ICU admission.
        hours: Length of the stay.
        severity: About -2 to 2.
        metavision: Charting system.
        death: Seconds since 1970, 0 if alive.
        birth: Seconds since 1970.
    """

    stay: Ints
    subject: Ints
    admission: Ints
    start: Ints
    hours: Ints
    severity: Floats
    metavision: NDArray[np.bool_]
    death: Ints
    birth: Ints

    def every_hour(self) -> tuple[Ints, Ints]:
        """Position of the stay and hour since admission, for each hour of each stay."""
        owner = np.repeat(np.arange(self.stay.size), self.hours)
        hour = np.arange(owner.size) - np.repeat(np.cumsum(self.hours) - self.hours, self.hours)
        return owner, hour


def simulate_stays(rng: np.random.Generator, *, first: int, n_stays: int) -> Hospital:
    """Draw the stays numbered first .. first + n_stays - 1 of a hospital."""
    new_patient = rng.random(n_stays) > 0.25
    new_patient[0] = True
    new_admission = new_patient | (rng.random(n_stays) > 0.3)
    patient, admission = np.cumsum(new_patient) - 1, np.cumsum(new_admission)
    hours = np.clip(rng.lognormal(np.log(60), 0.6, n_stays), 8, 160).astype(np.int64)
    # A patient's stays follow one another: the clock runs through the block and jumps per patient.
    gap = np.where(new_patient, rng.integers(200, 2000, n_stays) * _DAY, 3 * _DAY)
    elapsed = np.cumsum(gap + np.concatenate([[0], hours[:-1]]) * _HOUR) % (90 * 365 * _DAY)
    elapsed += rng.integers(0, 60, n_stays) * 60
    start = _EPOCH_2100 + elapsed
    severity = rng.normal(size=n_stays)
    dies = rng.random(n_stays) < 0.08 * np.exp(0.7 * severity)
    death = start + hours * _HOUR + rng.integers(-12, 24 * 120, n_stays) * _HOUR
    age = np.where(rng.random(n_stays) < 0.04, 300 * 365, rng.integers(16 * 365, 89 * 365, n_stays))
    number = 1 + first
    return Hospital(
        stay=200_000 + number + np.arange(n_stays),
        subject=number + patient,
        admission=100_000 + first + admission,
        start=start,
        hours=hours,
        severity=severity,
        metavision=rng.random(n_stays) < 0.5,
        death=np.where(dies & np.append(new_patient[1:], True), death // _DAY * _DAY, 0),
        birth=(start[np.flatnonzero(new_patient)[patient]] // _DAY - age[patient]) * _DAY,
    )


def simulate_table(table: str, *, seed: int, block: int, n_stays: int) -> pl.DataFrame:
    """One block of one table; every table of a block describes the same stays."""
    stays = simulate_stays(
        np.random.default_rng([seed, block]), first=block * BLOCK_STAYS, n_stays=n_stays
    )
    number = list(_TABLES).index(table)
    rng = np.random.default_rng([seed, block, number])
    frame = _TABLES[table](rng, stays)
    types = readable(CLEAN.reading)[table]
    frame = _with_units(rng, table, frame)
    frame = frame.with_columns(
        pl.from_epoch(name, time_unit="s").cast(pl.Datetime("us"))
        for name, kind in types.items()
        if kind == "timestamp"
    )
    if table in ("patients", "admissions", "icustays"):
        return frame.select(*types)
    flawed = frame[rng.permutation(frame.height)]
    repeats = flawed.sample(fraction=0.01, seed=int(rng.integers(2**31)))
    return pl.concat([flawed, repeats]).select(*types)


def _with_units(rng: np.random.Generator, table: str, frame: pl.DataFrame) -> pl.DataFrame:
    """State units as charted: the expected ones, and none in some rows."""
    if table in ("inputevents_mv", "inputevents_cv"):
        return frame.with_columns(amountuom=pl.lit("ml"))
    if table == "outputevents":
        return frame.with_columns(valueuom=pl.lit("mL"))
    if table not in ("chartevents", "labevents"):
        return frame
    items = concepts.select(CLEAN.reading)
    features = items.labs if table == "labevents" else items.vitals | items.chart_labs
    units = {item: next(iter(EXPECTED.get(name, ())), None) for item, name in features.items()}
    unit = pl.col("itemid").replace_strict(units, default=None, return_dtype=pl.String)
    stated = pl.Series(rng.random(frame.height) > 0.3)
    return frame.with_columns(valueuom=pl.when(stated).then(unit))


def _patients(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    frame = pl.DataFrame(
        {"subject_id": stays.subject, "dob": stays.birth, "dod": stays.death}
    ).with_columns(pl.col("dod").replace(0, None))
    people = frame.group_by("subject_id", maintain_order=True).agg(
        pl.col("dob").first(), pl.col("dod").max()
    )
    gender = rng.choice(["M", "F"], people.height)
    return people.with_columns(gender=pl.Series(gender))


def _admissions(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    leaves = stays.start + (stays.hours + rng.integers(2, 100, stays.stay.size)) * _HOUR
    frame = pl.DataFrame(
        {"subject_id": stays.subject, "hadm_id": stays.admission, "dischtime": leaves}
    )
    return frame.group_by("subject_id", "hadm_id", maintain_order=True).agg(
        pl.col("dischtime").max()
    )


def _icustays(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    del rng
    return pl.DataFrame(
        {
            "subject_id": stays.subject,
            "hadm_id": stays.admission,
            "icustay_id": stays.stay,
            "intime": stays.start,
            "outtime": stays.start + stays.hours * _HOUR,
        }
    )


def _chartevents(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    owner, hour = stays.every_hour()
    present = rng.random(owner.size) > 0.03
    present &= ~((hour // 9 % 5 == 4) & (stays.stay[owner] % 7 == 0))  # a 9-hour hole now and then
    owner, hour = owner[present], hour[present]
    parts = [_measured(rng, stays, owner, hour, line) for line in _VITALS + _CHART_LABS]
    parts.append(_devices(rng, stays, owner, hour))
    frame = pl.concat(parts)
    wild = rng.random(frame.height) < 0.002
    number = frame["valuenum"].to_numpy() * np.where(wild, 100.0, 1.0)
    lost = pl.Series(rng.random(frame.height) < 0.001)
    text = pl.when(pl.col("value").is_null()).then(pl.Series(number).cast(pl.String))
    return frame.with_columns(
        valuenum=pl.Series(number),
        value=text.otherwise(pl.col("value")),
        error=pl.Series((rng.random(frame.height) < 0.002).astype(np.int64)),
        icustay_id=pl.when(~lost).then(pl.col("icustay_id")),
    ).with_columns(pl.col("valuenum").fill_nan(None))


def _measured(
    rng: np.random.Generator,
    stays: Hospital,
    owner: Ints,
    hour: Ints,
    line: tuple[int | None, int | None, float, float, float, float, int],
) -> pl.DataFrame:
    """Rows of one charted quantity: at some hours, around a mean that severity moves."""
    carevue, metavision, mean, slope, spread, share, decimals = line
    item = np.where(stays.metavision[owner], metavision or 0, carevue or 0)
    chosen = (item > 0) & (rng.random(owner.size) < share)
    owner, hour, item = owner[chosen], hour[chosen], item[chosen]
    course = stays.severity[owner] * np.exp(-hour / 96)
    value = np.round(mean + slope * course + spread * rng.normal(size=owner.size), decimals)
    minute = rng.choice([0, 0, 0, 30], owner.size)
    return pl.DataFrame(
        {
            "icustay_id": stays.stay[owner],
            "charttime": stays.start[owner] // _HOUR * _HOUR + hour * _HOUR + minute * 60,
            "itemid": item.astype(np.int64),
            "value": pl.Series([None] * owner.size, dtype=pl.String),
            "valuenum": np.maximum(value, 0) if mean > 1 else value,
        }
    )


def _devices(rng: np.random.Generator, stays: Hospital, owner: Ints, hour: Ints) -> pl.DataFrame:
    """Oxygen devices and ventilator settings as text; 467 for CareVue, 226732 for MetaVision."""
    frame = _measured(rng, stays, owner, hour, (467, 226732, 0, 0, 0, 0.15, 0))
    text = rng.choice(np.array(_DEVICES), frame.height)
    frame = frame.with_columns(value=pl.Series(text), valuenum=pl.lit(np.nan))
    ill = stays.severity[owner] > 0.5
    peep = _measured(rng, stays, owner[ill], hour[ill], (506, 220339, 8, 1, 2, 0.2, 0))
    tips = _measured(rng, stays, owner, hour, (938, 225732, 0.4, 0, 0.5, 0.004, 0))
    return pl.concat([frame, peep, tips.with_columns(valuenum=pl.col("valuenum").clip(0, 1))])


def _labevents(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    owner, hour = stays.every_hour()
    drawn = rng.random(owner.size) < 0.14
    owner, hour = owner[drawn], hour[drawn] - rng.integers(0, 20, int(drawn.sum()))
    parts = []
    for item, mean, slope, spread, decimals in _LABS:
        done = rng.random(owner.size) < 0.7
        course = stays.severity[owner[done]]
        value = mean + slope * course + spread * rng.normal(size=course.size)
        value = np.round(np.maximum(value, mean / 8) if mean else value, decimals)
        parts.append(
            pl.DataFrame(
                {
                    "hadm_id": stays.admission[owner[done]],
                    "charttime": stays.start[owner[done]] + hour[done] * _HOUR,
                    "itemid": np.full(course.size, item),
                    "valuenum": np.where(rng.random(course.size) < 0.01, np.nan, value),
                }
            )
        )
    return pl.concat(parts).with_columns(pl.col("valuenum").fill_nan(None))


def _microbiology(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    chosen = rng.choice(stays.stay.size, 3 * stays.stay.size)
    t = stays.start[chosen] + rng.integers(-30, 60, chosen.size) * _HOUR
    dated = rng.random(chosen.size) < 0.1
    frame = pl.DataFrame(
        {
            "subject_id": stays.subject[chosen],
            "hadm_id": stays.admission[chosen],
            "charttime": t,
            "chartdate": t // _DAY * _DAY,
        }
    )
    return frame.with_columns(charttime=pl.when(~pl.Series(dated)).then(pl.col("charttime")))


def _prescriptions(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    chosen = rng.choice(stays.stay.size, 4 * stays.stay.size)
    drug = rng.integers(0, len(_PRESCRIPTIONS), chosen.size)
    names, codes, routes = (np.array(column)[drug] for column in zip(*_PRESCRIPTIONS, strict=True))
    date = (stays.start[chosen] + rng.integers(-30, 72, chosen.size) * _HOUR) // _DAY * _DAY
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
    start = stays.start[owner] // _HOUR * _HOUR + hour * _HOUR
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
            "endtime": start + length * _HOUR,
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
            "charttime": stays.start[owner] // _HOUR * _HOUR + hour * _HOUR,
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
    return pl.DataFrame(
        {
            "icustay_id": stays.stay[owner],
            "charttime": stays.start[owner] // _HOUR * _HOUR + hour * _HOUR,
            "itemid": np.where(hour == 0, 40060, item),
            "value": np.round(rng.lognormal(np.log(90) - 0.4 * stays.severity[owner], 0.7), 0),
        }
    )


def _procedures(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    chosen = np.flatnonzero(stays.metavision & (stays.severity > 0))
    item = rng.choice([225401, 225792, 227194, 225454], chosen.size)
    start = stays.start[chosen] + rng.integers(0, 20, chosen.size) * _HOUR
    return pl.DataFrame(
        {
            "icustay_id": stays.stay[chosen],
            "starttime": start,
            "endtime": start + rng.integers(1, 40, chosen.size) * _HOUR,
            "itemid": item,
        }
    )


_TABLES: Final[dict[str, Callable[[np.random.Generator, Hospital], pl.DataFrame]]] = {
    "patients": _patients,
    "admissions": _admissions,
    "icustays": _icustays,
    "chartevents": _chartevents,
    "labevents": _labevents,
    "microbiologyevents": _microbiology,
    "prescriptions": _prescriptions,
    "inputevents_mv": _inputevents_mv,
    "inputevents_cv": _inputevents_cv,
    "outputevents": _outputevents,
    "procedureevents_mv": _procedures,
}
