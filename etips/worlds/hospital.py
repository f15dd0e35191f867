"""A simulated hospital that charts as MIMIC-III or as MIMIC-IV does.

Plausible, not true; nothing in it comes from a patient. It charts the items that the cohort reads,
with the flaws that a cohort builder has to survive: outliers, repeats, gaps, mixed units, missing
stay ids, rewritten and erroneous rows. The patients are the same in both. As MIMIC-III it has both
charting systems. As MIMIC-IV it has one, no row ids, ages from years, laboratory rows without an
admission and with a blanked `value`, gases of several specimens, device names that end in a blank,
several devices at one time, new vasopressor items, rates in mg/kg/min, prescriptions with hours and
several codes.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from etips.cohorts.databases import Database
from etips.cohorts.mimic.items import POUND_WEIGHT_ITEM, read_list, select_items
from etips.cohorts.mimic.unit_audit import EXPECTED
from etips.data.decisions import Bools, Floats, Ints

HOUR: Final = 3600
DAY: Final = 24 * HOUR
BLOCK_STAYS: Final = 500
"""Stays that are simulated at a time."""
_EPOCH_2100: Final = 4_102_444_800
_OLDEST: Final = 91  # years; how MIMIC-IV stores ages above 89
_WITHOUT_FLAWS: Final = ("patients", "admissions", "icustays", "d_items")


def _shipped_list(name: str) -> list[dict[str, str]]:
    text = (files("etips.worlds") / "assets" / f"{name}.csv").read_text("utf-8")
    return [*csv.DictReader(text.splitlines())]


# Charted quantities: mean, how severity moves it, spread, share of hours. The items of the two
# charting systems may be in other units, so that each has its own line.
_LINES: Final = _shipped_list("hospital")
# Orders: on the scripts' list, off it, a false friend of name matching; as MIMIC-IV has them also
# two codes in one cell and a diluent. Rates: vasopressors in every unit. Labels of their items.
_DRUGS: Final = _shipped_list("hospital_drugs")
_BILIRUBIN: Final = (848, 225690)
_DEVICES: Final = ("None", "Nasal Cannula", "Face Tent", "Ventilator", "Non-Rebreather", "Other")
_FLUIDS_MV: Final = (225158, 225943, 225828, 226089, 220862, 225823)
_FLUIDS_CV: Final = (30018, 30021, 30063, 30001, 30020, 30009, 30006)

# As MIMIC-IV stores them, blanks at the end and all; "None" is a device, and so no missing value.
_DEVICE, _VERBAL, _MODE, _HAMILTON = 226732, 223900, 223849, 229314
_DEVICES_4: Final = (
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
_SPECIMENS: Final = {"ART.": 0.79, "VEN.": 0.15, "MIX.": 0.02, "CENTRAL VENOUS.": 0.02, "": 0.02}
BLANK: Final = "___"
"""What stands in `value` where it was taken out; the number beside it is right."""
_FLUIDS_4: Final = (*_FLUIDS_MV, 220949)


@dataclass(frozen=True)
class Hospital:
    """Stays of one block: who, when, how ill; every array has shape (n,).

    Attributes:
        stay: Id of the ICU stay.
        subject: Some patients return.
        admission: Some stays share one.
        start: Seconds since 1970 of ICU admission.
        hours: Length of the stay.
        severity: About -2 to 2; -3 for those who are only watched.
        metavision: Charting system.
        death: Seconds since 1970, 0 if alive.
        birth: Seconds since 1970.
        as_mimic4: Which database it charts as.
    """

    stay: Ints
    subject: Ints
    admission: Ints
    start: Ints
    hours: Ints
    severity: Floats
    metavision: Bools
    death: Ints
    birth: Ints
    as_mimic4: bool = False

    def every_hour(self) -> tuple[Ints, Ints]:
        """Position of the stay and hour since admission, for each hour of each stay."""
        owner = np.repeat(np.arange(self.stay.size), self.hours)
        hour = np.arange(owner.size) - np.repeat(np.cumsum(self.hours) - self.hours, self.hours)
        return owner, hour

    def at(self, owner: Ints, hour: Ints) -> Ints:
        """Seconds since 1970 of a whole hour of a stay."""
        return self.start[owner] // HOUR * HOUR + hour * HOUR


def simulate_stays(rng: np.random.Generator, *, first: int, n_stays: int) -> Hospital:
    """Draw the stays numbered first .. first + n_stays - 1 of a hospital."""
    new_patient = rng.random(n_stays) > 0.25
    new_patient[0] = True
    new_admission = new_patient | (rng.random(n_stays) > 0.3)
    patient, admission = np.cumsum(new_patient) - 1, np.cumsum(new_admission)
    hours = np.clip(rng.lognormal(np.log(60), 0.6, n_stays), 8, 160).astype(np.int64)
    # A patient's stays follow one another: the clock runs through the block and jumps per patient.
    gap = np.where(new_patient, rng.integers(200, 2000, n_stays) * DAY, 3 * DAY)
    elapsed = np.cumsum(gap + np.concatenate([[0], hours[:-1]]) * HOUR) % (90 * 365 * DAY)
    elapsed += rng.integers(0, 60, n_stays) * 60
    start = _EPOCH_2100 + elapsed
    severity = np.where(rng.random(n_stays) < 0.06, -3.0, rng.normal(size=n_stays))  # some are well
    dies = rng.random(n_stays) < 0.12 * np.exp(0.7 * severity)
    soon, late = rng.integers(-12, 48, n_stays), rng.integers(48, 24 * 120, n_stays)
    death = start + (hours + np.where(rng.random(n_stays) < 0.4, soon, late)) * HOUR
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
        death=np.where(dies & np.append(new_patient[1:], True), death // DAY * DAY, 0),
        birth=(start[np.flatnonzero(new_patient)[patient]] // DAY - age[patient]) * DAY,
    )


def simulate_table(
    database: Database, table: str, *, seed: int, block: int, n_stays: int
) -> pl.DataFrame:
    """One block of one table; every table of a block describes the same stays."""
    stays = simulate_stays(
        np.random.default_rng([seed, block]), first=block * BLOCK_STAYS, n_stays=n_stays
    )
    tables = database.layout.tables
    if database.name == "mimic4":  # its own numbers, all in the newer charting system
        stays = replace(
            stays,
            as_mimic4=True,
            stay=30_000_000 + stays.stay,
            subject=10_000_000 + stays.subject,
            admission=20_000_000 + stays.admission,
            metavision=np.ones(n_stays, bool),
        )
    rng = np.random.default_rng([seed, block, list(tables).index(table)])
    frame = state_units(rng, table, _TABLES[table](rng, stays), database)
    frame = frame.rename({"stay": database.stay_column}, strict=False)
    return as_written(rng, table, frame, tables[table])


def state_units(
    rng: np.random.Generator, table: str, frame: pl.DataFrame, database: Database
) -> pl.DataFrame:
    """State units as charted: those that a feature is expected in, and none in some rows."""
    if table == "outputevents":
        return frame.with_columns(valueuom=pl.lit("mL"))
    if table not in ("chartevents", "labevents"):
        return frame
    items = select_items(read_list(database.name), database.profiles["clean"].reading)
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


# ---- who ---------------------------------------------------------------------------------------


def _patients(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    """Birth, or age in a year of reference, which need not be that of a stay."""
    years = (stays.start - stays.birth) // (365.25 * DAY)
    born: dict[str, Ints] = {"dob": stays.birth}
    if stays.as_mimic4:
        born = {
            "anchor_age": np.where(years > 89, _OLDEST, np.maximum(years, 18)).astype(np.int64),
            "anchor_year": 1970 + (stays.start // (365.25 * DAY)).astype(np.int64),
        }
    frame = pl.DataFrame({"subject_id": stays.subject, **born, "dod": stays.death})
    people = frame.group_by("subject_id", maintain_order=True).agg(
        pl.col(*born).first(), pl.col("dod").replace(0, None).max()
    )
    return people.with_columns(gender=pl.Series(rng.choice(["M", "F"], people.height)))


def _admissions(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    """When each admission ended, some hours after its last stay."""
    leaves = stays.start + (stays.hours + rng.integers(2, 100, stays.stay.size)) * HOUR
    frame = pl.DataFrame(
        {"subject_id": stays.subject, "hadm_id": stays.admission, "dischtime": leaves}
    )
    return frame.group_by("subject_id", "hadm_id", maintain_order=True).agg(
        pl.col("dischtime").max()
    )


def _icustays(_: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "subject_id": stays.subject,
            "hadm_id": stays.admission,
            "stay": stays.stay,
            "intime": stays.start,
            "outtime": stays.start + stays.hours * HOUR,
        }
    )


# ---- what is charted ---------------------------------------------------------------------------


def _chartevents(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    """Everything charted by hour: vital signs, labs at the bedside, devices, line tips."""
    owner, hour = stays.every_hour()
    present = rng.random(owner.size) > 0.03
    present &= ~((hour // 9 % 5 == 4) & (stays.stay[owner] % 7 == 0))  # a 9-hour hole now and then
    owner, hour = owner[present], hour[present]
    lines = [line for line in _LINES if line["table"] == "chartevents"]
    parts = [_charted(rng, stays, owner, hour, line) for line in lines]
    parts += _devices(rng, stays, owner, hour)
    frame = pl.concat(parts)
    wild = rng.random(frame.height) < 0.002
    number = frame["valuenum"].to_numpy() * np.where(wild, 100.0, 1.0)
    unknown = frame["itemid"].is_in(_BILIRUBIN).to_numpy() & (rng.random(frame.height) < 0.01)
    number = np.where(unknown, 999_999.0, number)  # how some charts say so
    lost = pl.Series(rng.random(frame.height) < 0.001)
    text = pl.when(pl.col("value").is_null()).then(pl.Series(number).cast(pl.String))
    frame = frame.with_columns(
        valuenum=pl.Series(number),
        value=text.otherwise(pl.col("value")),
        error=pl.Series((rng.random(frame.height) < 0.002).astype(np.int64)),
        stay=pl.when(~lost).then(pl.col("stay")),
    ).with_columns(pl.col("valuenum").fill_nan(None))
    return _as_texts(rng, frame.drop("error").drop_nulls("stay")) if stays.as_mimic4 else frame


def _charted(
    rng: np.random.Generator, stays: Hospital, owner: Ints, hour: Ints, line: Mapping[str, str]
) -> pl.DataFrame:
    """Rows of one charted quantity: at some hours, around a mean that severity moves."""
    mean, slope, spread = (float(line[name]) for name in ("mean", "by_severity", "spread"))
    items = (int(line["item"] or 0), int(line["carevue"] or 0))
    item = np.where(stays.metavision[owner], *items)
    chosen = (item > 0) & (rng.random(owner.size) < float(line["share"]))
    owner, hour, item = owner[chosen], hour[chosen], item[chosen]
    course = stays.severity[owner] * np.exp(-hour / 96)
    value = mean + slope * course + spread * rng.normal(size=owner.size)
    value = np.round(value, int(line["decimals"]))
    minute = rng.choice([0, 0, 0, 30], owner.size)
    return pl.DataFrame(
        {
            "stay": stays.stay[owner],
            "charttime": stays.at(owner, hour) + minute * 60,
            "itemid": item.astype(np.int64),
            "value": pl.Series([None] * owner.size, dtype=pl.String),
            "valuenum": np.maximum(value, 0) if mean > 1 else value,
        }
    )


def _devices(
    rng: np.random.Generator, stays: Hospital, owner: Ints, hour: Ints
) -> list[pl.DataFrame]:
    """Oxygen devices as text, ventilator settings and line tips."""
    device, setting, tip = (line for line in _LINES if line["table"] == "devices")
    frame = _charted(rng, stays, owner, hour, device)
    text = rng.choice(np.array(_DEVICES), frame.height)
    frame = frame.with_columns(value=pl.Series(text), valuenum=pl.lit(np.nan))
    ill = stays.severity[owner] > 0.5
    peep = _charted(rng, stays, owner[ill], hour[ill], setting)
    tips = _charted(rng, stays, owner, hour, tip)
    return [frame, peep, tips.with_columns(pl.col("valuenum").clip(0, 1))]


def _as_texts(rng: np.random.Generator, rows: pl.DataFrame) -> pl.DataFrame:
    """Devices and modes of ventilators as MIMIC-IV has them, and answers that a tube prevents."""
    devices = rows.filter(pl.col("itemid") == _DEVICE)
    second = devices.filter(pl.Series(rng.random(devices.height) < 0.04))  # two at a time
    both = pl.concat([devices, second])
    parts = [both.with_columns(value=pl.Series(rng.choice(np.array(_DEVICES_4), both.height)))]
    for item, texts in _MODES.items():
        own = devices.filter(pl.Series(rng.random(devices.height) < 0.1))
        text = pl.Series(rng.choice(np.array(texts), own.height), dtype=pl.String)
        parts.append(own.with_columns(value=text, itemid=pl.lit(item, pl.Int64)))
    rows = pl.concat([rows.filter(pl.col("itemid") != _DEVICE), *parts])
    tube = pl.Series(rng.random(rows.height) < 0.9)
    untestable = (pl.col("itemid") == _VERBAL) & (pl.col("valuenum") == 1) & tube
    return rows.with_columns(
        value=pl.when(untestable).then(pl.lit("No Response-ETT")).otherwise(pl.col("value"))
    )


def _labevents(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    """Laboratory results, some from before the stay."""
    owner, hour = stays.every_hour()
    drawn = rng.random(owner.size) < 0.14
    owner, hour = owner[drawn], hour[drawn] - rng.integers(0, 20, int(drawn.sum()))
    parts = []
    for line in (line for line in _LINES if line["table"] == "labevents"):
        mean, slope, spread = (float(line[name]) for name in ("mean", "by_severity", "spread"))
        done = rng.random(owner.size) < 0.7
        course = stays.severity[owner[done]]
        value = mean + slope * course + spread * rng.normal(size=course.size)
        value = np.round(np.maximum(value, mean / 8) if mean else value, int(line["decimals"]))
        parts.append(
            pl.DataFrame(
                {
                    "hadm_id": stays.admission[owner[done]],
                    "charttime": stays.start[owner[done]] + hour[done] * HOUR,
                    "itemid": np.full(course.size, int(line["item"])),
                    "valuenum": np.where(rng.random(course.size) < 0.01, np.nan, value),
                }
            )
        )
    rows = pl.concat(parts).with_columns(pl.col("valuenum").fill_nan(None))
    rows = rows.with_columns(value=pl.col("valuenum").cast(pl.String))
    return _as_specimens(rng, stays, rows) if stays.as_mimic4 else rows


def _as_specimens(rng: np.random.Generator, stays: Hospital, rows: pl.DataFrame) -> pl.DataFrame:
    """Results by patient and specimen, a quarter without an admission; gases say from where."""
    owner = pl.DataFrame({"hadm_id": stays.admission, "subject_id": stays.subject}).unique(
        "hadm_id", maintain_order=True
    )
    rows = rows.join(owner, on="hadm_id", how="left", maintain_order="left")
    first, is_gas = int(stays.stay[0]) * 1000, pl.col("itemid").is_in(_GASES)
    # Gases are drawn by themselves, apart from what else is drawn at the time.
    drawn = pl.struct("hadm_id", "charttime", is_gas)
    rows = rows.with_columns(specimen_id=first + drawn.rank("dense").cast(pl.Int64))
    blank = pl.Series(rng.random(rows.height) < 0.06)
    number = pl.col("valuenum").cast(pl.String)
    rows = rows.with_columns(
        value=pl.when(blank | pl.col("valuenum").is_null()).then(pl.lit(BLANK)).otherwise(number)
    )
    gases = rows.filter(is_gas).unique("specimen_id", maintain_order=True)
    kind = rng.choice(np.array([*_SPECIMENS]), gases.height, p=[*_SPECIMENS.values()])
    specimens = gases.with_columns(
        value=pl.Series(kind, dtype=pl.String),
        itemid=pl.lit(_SPECIMEN, pl.Int64),
        valuenum=pl.lit(None, pl.Float64),
    )
    rows = pl.concat([rows, specimens.filter(pl.col("value") != "").select(rows.columns)])
    stray = (rows["specimen_id"] * 2_654_435_761 % 100) < 26  # a specimen is with or without
    return rows.with_columns(hadm_id=pl.when(~stray).then(pl.col("hadm_id")))


def _microbiology(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    """Specimens, some with a date alone, in MIMIC-IV a third without an admission."""
    chosen = rng.choice(stays.stay.size, 3 * stays.stay.size)
    t = stays.start[chosen] + rng.integers(-30, 60, chosen.size) * HOUR
    dated = pl.Series(rng.random(chosen.size) < (0.04 if stays.as_mimic4 else 0.1))
    strays = rng.random(chosen.size) < 0.3 if stays.as_mimic4 else np.zeros(chosen.size, bool)
    frame = pl.DataFrame(
        {
            "subject_id": stays.subject[chosen],
            "hadm_id": stays.admission[chosen],
            "micro_specimen_id": int(stays.stay[0]) * 10 + np.arange(chosen.size),
            "charttime": t,
            "chartdate": t // DAY * DAY,
        }
    )
    return frame.with_columns(
        charttime=pl.when(~dated).then(pl.col("charttime")),
        hadm_id=pl.when(~pl.Series(strays)).then(pl.col("hadm_id")),
    )


# ---- what is given and done --------------------------------------------------------------------


def _drugs(name: str, *columns: str) -> list[NDArray[np.str_]]:
    """Columns of a list of drugs."""
    rows = [row for row in _DRUGS if row["list"] == name]
    return [np.array([row[column] for row in rows]) for column in columns]


def _rates(rng: np.random.Generator, name: str, n: int) -> tuple[Ints, NDArray[np.str_], Floats]:
    """Items, units and usual doses of n rates of a list."""
    items, units, doses = _drugs(name, "item", "unit", "dose")
    chosen = rng.integers(0, items.size, n)
    return items.astype(np.int64)[chosen], units[chosen], doses.astype(np.float64)[chosen]


def _prescriptions(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    """Orders by date, four in ten without a stay; in MIMIC-IV by the hour, some end too early."""
    drugs = _drugs(
        "orders 4" if stays.as_mimic4 else "orders 3", "name", "gsn", "route", "drug_type"
    )
    chosen = rng.choice(stays.stay.size, (5 if stays.as_mimic4 else 4) * stays.stay.size)
    kind = rng.integers(0, drugs[0].size, chosen.size)
    names, codes, routes, kinds = (column[kind] for column in drugs)
    begins = rng.integers(-30, 72, chosen.size)
    start, number = stays.at(chosen, begins), stays.stay[0] * 10 + rng.permutation(chosen.size)
    own = {"row_id": number, "startdate": (stays.start[chosen] + begins * HOUR) // DAY * DAY}
    if stays.as_mimic4:
        stop = start + rng.integers(-6, 120, chosen.size) * HOUR
        own = {"pharmacy_id": number, "stoptime": stop}
    frame = pl.DataFrame(
        {
            "subject_id": stays.subject[chosen],
            "hadm_id": stays.admission[chosen],
            "stay": stays.stay[chosen],
            "starttime": start,
            **own,
            "drug": names,
            "gsn": codes,
            "route": routes,
            "drug_type": kinds,
        }
    )
    if not stays.as_mimic4:
        named = pl.Series(rng.random(chosen.size) > 0.38)
        return frame.with_columns(stay=pl.when(named).then(pl.col("stay")))
    silent = pl.Series(rng.random(chosen.size) < 0.01)
    return frame.drop("stay").with_columns(
        pl.col("gsn").replace("", None), route=pl.when(~silent).then(pl.col("route"))
    )


def _some_hours(
    rng: np.random.Generator, stays: Hospital, share: float, *, among: Bools | None = None
) -> tuple[Ints, Ints]:
    """Position of the stay and hour of a share of the hours of some stays."""
    owner, hour = stays.every_hour()
    chosen = rng.random(owner.size) < share
    if among is not None:
        chosen &= among[owner]
    return owner[chosen], hour[chosen]


def _infusions(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    """Infusions and boluses. In MIMIC-IV a rate in mg/kg/min may stand beside a weight of 1."""
    newer = stays.as_mimic4
    statuses = ["FinishedRunning", "ChangeDose/Rate", "Paused", "Stopped", "Bolus"]
    owner, hour = _some_hours(rng, stays, 0.3, among=stays.metavision)
    n, start = owner.size, stays.at(owner, hour)
    length = rng.integers(1, 10, n)
    pressor = (stays.severity[owner] > 0.3) & (rng.random(n) < 0.4)
    items, units, doses = _rates(rng, "rates 4" if newer else "rates 3", n)
    bolus = ~pressor & (rng.random(n) < 0.3)
    milligrams = pressor & (units == "mg/kg/min")
    one, litres = np.zeros(n, bool), np.zeros(n, bool)
    if newer:
        one = milligrams & (rng.random(n) < 0.5)  # then the rate is really in mcg/kg/min
    speed = np.where(pressor, np.where(one, 0.15, doses), 100.0) * rng.lognormal(0, 0.5, n)
    speed = np.where(milligrams & ~one, np.round(speed, 7), np.round(speed, 4))
    if newer:
        litres = ~pressor & (rng.random(n) < 0.02)
    amount = np.round(np.where(bolus & newer, 100.0, speed) * length, 3)
    amount = np.where(pressor, 5.0, np.where(litres, amount / 1000, amount))
    fluid = rng.choice(_FLUIDS_4 if newer else _FLUIDS_MV, n)
    frame = pl.DataFrame(
        {
            "stay": stays.stay[owner],
            "starttime": start,
            "endtime": start + length * HOUR,
            "itemid": np.where(pressor, items, fluid),
            "amount": amount,
            "amountuom": np.where(pressor & newer, "mg", np.where(litres, "L", "ml")),
            "rate": np.where(bolus, np.nan, speed),
            "rateuom": np.where(pressor, units, "mL/hour"),
        }
    ).with_columns(pl.col("rate").fill_nan(None))
    if not newer:
        status = rng.choice(["FinishedRunning", "Rewritten"], n, p=[0.8, 0.2])
        return frame.with_columns(statusdescription=pl.Series(status))
    return frame.with_columns(
        statusdescription=pl.Series(rng.choice(statuses, n)),
        patientweight=pl.Series(np.where(one, 1.0, np.round(82 + 18 * rng.normal(size=n), 1))),
    )


def _inputevents_cv(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    """Rates and amounts at a time, of the older charting system."""
    owner, hour = _some_hours(rng, stays, 0.6, among=~stays.metavision)
    n = owner.size
    pressor = (stays.severity[owner] > 0.3) & (rng.random(n) < 0.4)
    items, units, doses = _rates(rng, "rates of CareVue", n)
    rate = np.where(pressor, np.round(doses * rng.lognormal(0, 0.5, n), 3), np.nan)
    fluid = np.where(hour == 0, 30054, rng.choice(_FLUIDS_CV, n))
    frame = pl.DataFrame(
        {
            "stay": stays.stay[owner],
            "charttime": stays.at(owner, hour),
            "itemid": np.where(pressor, items, fluid),
            "amount": np.round(rng.lognormal(np.log(60), 0.9, n), 1),
            "amountuom": "ml",
            "rate": rate,
            "rateuom": np.where(pressor, units, ""),
        }
    )
    return frame.with_columns(pl.col("rate").fill_nan(None), pl.col("rateuom").replace("", None))


def _outputevents(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    owner, hour = _some_hours(rng, stays, 0.35)
    items, shares = [226559, 227510, 227488, 226567], [0.91, 0.05, 0.02, 0.02]
    if stays.as_mimic4:
        item, before = rng.choice(items, owner.size, p=shares), 226633
    else:
        item, before = np.where(stays.metavision[owner], 226559, 40055), 40060
        item = np.where(rng.random(owner.size) < 0.05, 227510, item)
        item = np.where(rng.random(owner.size) < 0.02, 227488, item)  # irrigant that went in
    volume = np.round(rng.lognormal(np.log(90) - 0.4 * stays.severity[owner], 0.7), 0)
    volume = np.where(rng.random(owner.size) < 0.001, 13_000.0, volume)  # a slip of the pen
    return pl.DataFrame(
        {
            "stay": stays.stay[owner],
            "charttime": stays.at(owner, hour),
            "itemid": np.where(hour == 0, before, item),
            "value": volume,
        }
    )


def _procedures(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    chosen = np.flatnonzero(stays.metavision & (stays.severity > 0))
    item = np.empty(0)
    if not stays.as_mimic4:
        item = rng.choice([225401, 225792, 227194, 225454], chosen.size)
    start = stays.start[chosen] + rng.integers(0, 20, chosen.size) * HOUR
    end = start + rng.integers(1, 40, chosen.size) * HOUR
    if stays.as_mimic4:
        item = rng.choice([225401, 225792, 225794, 227194, 225454], chosen.size)
    return pl.DataFrame(
        {"stay": stays.stay[chosen], "starttime": start, "endtime": end, "itemid": item}
    )


def _items(_: np.random.Generator, __: Hospital) -> pl.DataFrame:
    items, labels = _drugs("labels 4", "item", "name")
    return pl.DataFrame(
        {"itemid": items.astype(np.int64), "label": labels, "linksto": "inputevents"}
    )


_TABLES: Final = {
    "patients": _patients,
    "admissions": _admissions,
    "icustays": _icustays,
    "chartevents": _chartevents,
    "labevents": _labevents,
    "microbiologyevents": _microbiology,
    "prescriptions": _prescriptions,
    "inputevents": _infusions,
    "inputevents_mv": _infusions,
    "inputevents_cv": _inputevents_cv,
    "outputevents": _outputevents,
    "procedureevents": _procedures,
    "procedureevents_mv": _procedures,
    "d_items": _items,
}
