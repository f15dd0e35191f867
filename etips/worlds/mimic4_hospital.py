"""A simulated hospital that charts as MIMIC-IV does.

The patients and their courses are those of `mimic3_stays` and `mimic3_charts`, in one charting
system, with what is new in MIMIC-IV: no row ids, ages from years, laboratory rows without an
admission and with a blanked `value`, gases of several specimens, device names that end in a blank,
several devices at one time, new vasopressor items, rates in mg/kg/min, prescriptions with hours and
several codes. Nothing in it comes from a patient.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
import polars as pl

from etips.cohorts.mimic.items import read_list, select_items
from etips.cohorts.mimic.mimic4 import CLEAN, Mimic4Extraction
from etips.worlds.mimic3_stays import BLOCK_STAYS, DAY, HOUR, Hospital, simulate_stays
from etips.worlds.mimic4_events import chartevents, inputevents, labevents, prescriptions
from etips.worlds.raw_hospital import admissions, as_written, icustays, state_units

_FIRST_STAY, _FIRST_SUBJECT, _FIRST_ADMISSION = 30_000_000, 10_000_000, 20_000_000
_OLDEST: Final = 91  # how ages above 89 are stored
_LABELS: Final = {
    221906: "Norepinephrine", 221289: "Epinephrine", 229617: "Epinephrine.",
    221749: "Phenylephrine", 229630: "Phenylephrine (50/250)",
    229631: "Phenylephrine (200/250)_OLD_1", 229632: "Phenylephrine (200/250)",
    221662: "Dopamine", 222315: "Vasopressin", 221653: "Dobutamine", 225158: "NaCl 0.9%",
}  # fmt: skip


def simulate_table(table: str, *, seed: int, block: int, n_stays: int) -> pl.DataFrame:
    """One block of one table; every table of a block describes the same stays."""
    stays = _renumbered(
        simulate_stays(
            np.random.default_rng([seed, block]), first=block * BLOCK_STAYS, n_stays=n_stays
        )
    )
    rng = np.random.default_rng([seed, block, list(_TABLES).index(table)])
    frame = state_units(
        rng, table, _TABLES[table](rng, stays), select_items(read_list("mimic4"), CLEAN.reading)
    )
    return as_written(rng, table, frame, Mimic4Extraction.layout.tables[table])


def _renumbered(stays: Hospital) -> Hospital:
    """The same stays under MIMIC-IV's numbers, all in the newer charting system."""
    return replace(
        stays,
        stay=_FIRST_STAY + stays.stay,
        subject=_FIRST_SUBJECT + stays.subject,
        admission=_FIRST_ADMISSION + stays.admission,
        metavision=np.ones(stays.stay.size, bool),
    )


def _patients(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    """Age in a year of reference, which need not be that of a stay."""
    years = (stays.start - stays.birth) // (365.25 * DAY)
    frame = pl.DataFrame(
        {
            "subject_id": stays.subject,
            "anchor_age": np.where(years > 89, _OLDEST, np.maximum(years, 18)).astype(np.int64),
            "anchor_year": 1970 + (stays.start // (365.25 * DAY)).astype(np.int64),
            "dod": stays.death,
        }
    ).with_columns(pl.col("dod").replace(0, None))
    people = frame.group_by("subject_id", maintain_order=True).agg(
        pl.col("anchor_age", "anchor_year").first(), pl.col("dod").max()
    )
    return people.with_columns(gender=pl.Series(rng.choice(["M", "F"], people.height)))


def _icustays(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    del rng
    return icustays(stays, stay_column="stay_id")


def _microbiology(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    """Specimens; a third without an admission, some with a date alone."""
    chosen = rng.choice(stays.stay.size, 3 * stays.stay.size)
    t = stays.start[chosen] + rng.integers(-30, 60, chosen.size) * HOUR
    dated, stray = (pl.Series(rng.random(chosen.size) < share) for share in (0.04, 0.3))
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
        hadm_id=pl.when(~stray).then(pl.col("hadm_id")),
    )


def _outputevents(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    owner, hour = stays.every_hour()
    chosen = rng.random(owner.size) < 0.35
    owner, hour = owner[chosen], hour[chosen]
    item = rng.choice([226559, 227510, 227488, 226567], owner.size, p=[0.91, 0.05, 0.02, 0.02])
    volume = np.round(rng.lognormal(np.log(90) - 0.4 * stays.severity[owner], 0.7), 0)
    volume = np.where(rng.random(owner.size) < 0.001, 13_000.0, volume)  # a slip of the pen
    return pl.DataFrame(
        {
            "stay_id": stays.stay[owner],
            "charttime": stays.start[owner] // HOUR * HOUR + hour * HOUR,
            "itemid": np.where(hour == 0, 226633, item),
            "value": volume,
        }
    )


def _procedures(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    chosen = np.flatnonzero(stays.severity > 0)
    start = stays.start[chosen] + rng.integers(0, 20, chosen.size) * HOUR
    return pl.DataFrame(
        {
            "stay_id": stays.stay[chosen],
            "starttime": start,
            "endtime": start + rng.integers(1, 40, chosen.size) * HOUR,
            "itemid": rng.choice([225401, 225792, 225794, 227194, 225454], chosen.size),
        }
    )


def _items(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    del rng, stays
    return pl.DataFrame(
        {
            "itemid": list(_LABELS),
            "label": list(_LABELS.values()),
            "linksto": ["inputevents"] * len(_LABELS),
        }
    )


_TABLES: Final[dict[str, Callable[[np.random.Generator, Hospital], pl.DataFrame]]] = {
    "patients": _patients,
    "admissions": admissions,
    "icustays": _icustays,
    "chartevents": chartevents,
    "labevents": labevents,
    "microbiologyevents": _microbiology,
    "prescriptions": prescriptions,
    "inputevents": inputevents,
    "outputevents": _outputevents,
    "procedureevents": _procedures,
    "d_items": _items,
}
