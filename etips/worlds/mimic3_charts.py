"""What a simulated hospital charts: vital signs, devices and laboratory results."""

from typing import Final

import numpy as np
import polars as pl

from etips.worlds.mimic3_stays import HOUR, Hospital, Ints

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
    (None, 226531, 180, 0, 40, 0.02, 1),
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
_BILIRUBIN: Final = (848, 225690)
_DEVICES: Final = ("None", "Nasal Cannula", "Face Tent", "Ventilator", "Non-Rebreather", "Other")


def chartevents(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    """Everything charted by hour: vital signs, labs at the bedside, devices, line tips."""
    owner, hour = stays.every_hour()
    present = rng.random(owner.size) > 0.03
    present &= ~((hour // 9 % 5 == 4) & (stays.stay[owner] % 7 == 0))  # a 9-hour hole now and then
    owner, hour = owner[present], hour[present]
    parts = [_measured(rng, stays, owner, hour, line) for line in _VITALS + _CHART_LABS]
    parts.append(_devices(rng, stays, owner, hour))
    frame = pl.concat(parts)
    wild = rng.random(frame.height) < 0.002
    number = frame["valuenum"].to_numpy() * np.where(wild, 100.0, 1.0)
    unknown = frame["itemid"].is_in(_BILIRUBIN).to_numpy() & (rng.random(frame.height) < 0.01)
    number = np.where(unknown, 999_999.0, number)  # how some charts say so
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
            "charttime": stays.start[owner] // HOUR * HOUR + hour * HOUR + minute * 60,
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


def labevents(rng: np.random.Generator, stays: Hospital) -> pl.DataFrame:
    """Laboratory results, some from before the stay."""
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
                    "charttime": stays.start[owner[done]] + hour[done] * HOUR,
                    "itemid": np.full(course.size, item),
                    "valuenum": np.where(rng.random(course.size) < 0.01, np.nan, value),
                }
            )
        )
    results = pl.concat(parts).with_columns(pl.col("valuenum").fill_nan(None))
    return results.with_columns(value=pl.col("valuenum").cast(pl.String))
