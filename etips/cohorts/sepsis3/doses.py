"""Fluids, urine and vasopressors of each step (docs/cohort/rules.md sections 4.2 and 12)."""

from typing import Final, NamedTuple

import numpy as np
import polars as pl

from etips.cohorts.sepsis3.events import (
    PER_KG,
    PER_MINUTE,
    UNITS_PER_HOUR,
    UNITS_PER_MINUTE,
    Events,
)
from etips.cohorts.sepsis3.grid import Floats, Ints, Steps, steps_of
from etips.cohorts.sepsis3.rules import Rules
from etips.cohorts.sepsis3.variables import HOUR

BODY_WEIGHT_KG: Final = 80  # assumed whenever a rate is per minute and not per kg
VASOPRESSIN_LIMIT: Final = 0.2
_LONG_AGO: Final = -(10**12)  # seconds; 30,000 years


class Moments(NamedTuple):
    """Events of stays that have steps, shape (n,) each, sorted so that sums repeat exactly.

    `owner` is the position of the stay in `Steps.stays`; `start` and `end`, equal for a moment, are
    seconds since the left edge of the stay's step 0; `size` is a volume, a rate or a dose.
    """

    owner: Ints
    start: Ints
    end: Ints
    size: Floats


def moments(rows: pl.DataFrame, steps: Steps, *, start: str, end: str, size: str) -> Moments:
    """Turn rows with a stay into offsets from the first step of their stay."""
    events = rows.select("stay", start=start, end=end, size=size).drop_nulls()
    events = events.filter(pl.col("stay").is_in(steps.stays))
    events = events.sort("stay", "start", "end", "size", maintain_order=True)
    owner = np.searchsorted(steps.stays, events["stay"].to_numpy())
    return Moments(
        owner=owner,
        start=events["start"].to_numpy() - steps.beg[owner],
        end=events["end"].to_numpy() - steps.beg[owner],
        size=events["size"].to_numpy().astype(np.float64),
    )


def _sum(group: Ints, size: Floats, n_groups: int) -> Floats:
    """Sum by group, added in the order given."""
    return np.bincount(group, size, minlength=n_groups).astype(np.float64)


def _sum_in_steps(events: Moments, steps: Steps) -> tuple[Floats, Ints]:
    """Sum and number of the moments in each step."""
    event, number = steps_of(events.start, steps.rules)
    position, exists = steps.find(events.owner[event], number)
    position, size = position[exists], events.size[event[exists]]
    n_records = np.bincount(position, minlength=steps.number.size)
    return _sum(position, size, steps.number.size), n_records.astype(np.int64)


def _sum_before(events: Moments, steps: Steps) -> Floats:
    """Sum of the moments up to the first step of each stay; its edge counts in closed steps."""
    before = events.start < 0 if steps.rules.half_open_steps else events.start <= 0
    return _sum(events.owner[before], events.size[before], steps.stays.size)


def _touched(events: Moments, steps: Steps) -> tuple[Ints, Ints, Ints]:
    """Pairs of interval and existing step that touch: (interval, position, left edge of step)."""
    low, high = np.minimum(events.start, events.end), np.maximum(events.start, events.end)
    seconds = steps.rules.step_seconds
    if steps.rules.half_open_steps:
        first = low // seconds
        last = np.maximum(first, -(-high // seconds) - 1)
    else:
        first, last = -(-low // seconds) - 1, high // seconds
    first, last = first.clip(min=0), last.clip(max=steps.rules.most_steps - 1)
    length = (last - first + 1).clip(min=0)
    event = np.repeat(np.arange(length.size), length)
    number = np.arange(event.size) - np.repeat(np.cumsum(length) - length, length) + first[event]
    position, exists = steps.find(events.owner[event], number)
    return event[exists], position[exists], number[exists] * seconds


def infused_volume(
    start: Ints, end: Ints, t0: Ints, t1: Ints, rate: Floats, *, half_open: bool
) -> Floats:
    """Volume that an infusion gives between t0 and t1 (seconds; rate in mL/h).

    Closed steps add every term of section 12 that applies, so that an infusion starting at t0 or
    ending at t1 counts twice, and four times if both hold (oddity 5).
    """
    volume: Floats
    if half_open:
        overlap = np.minimum(end, t1) - np.maximum(start, t0)
        volume = rate * np.maximum(overlap, 0) / HOUR
        return volume
    terms = (
        ((start >= t0) & (end <= t1), end - start),
        ((start <= t0) & (t0 <= end) & (end <= t1), end - t0),
        ((t0 <= start) & (start <= t1) & (end >= t1), t1 - start),
        ((start <= t0) & (end >= t1), t1 - t0),
    )
    seconds = np.sum([np.where(applies, length, 0) for applies, length in terms], axis=0)
    volume = rate * seconds / HOUR
    return volume


def _per_stay(rows: pl.DataFrame, steps: Steps) -> Floats:
    """`volume` by stay, 0 where a stay has none."""
    volumes = dict(rows.select("stay", "volume").rows())
    return np.array([volumes.get(stay) or 0.0 for stay in steps.stays.tolist()], np.float64)


def _running_total(initial: Floats, in_step: Floats, owner: Ints) -> Floats:
    """Initial amount plus the sum over the steps that exist, up to and including each."""
    frame = pl.DataFrame({"owner": owner, "in_step": in_step})
    total = frame.select(pl.col("in_step").cum_sum().over("owner")).to_series()
    return np.asarray(initial[owner] + total.to_numpy())


def fluid_columns(events: Events, steps: Steps) -> dict[str, Floats]:
    """input_4hourly and input_total of each step."""
    bolus = moments(events.boluses, steps, start="t", end="t", size="volume")
    infusion = moments(events.infusions, steps, start="start", end="end", size="rate")
    event, position, t0 = _touched(infusion, steps)
    half_open, (owner, start, end, rate) = steps.rules.half_open_steps, infusion
    t1 = t0 + steps.rules.step_seconds
    running = infused_volume(start[event], end[event], t0, t1, rate[event], half_open=half_open)
    in_step = _sum_in_steps(bolus, steps)[0] + _sum(position, running, steps.number.size)
    zero = np.zeros_like(start)
    earlier = infused_volume(start, end, zero + _LONG_AGO, zero, rate, half_open=half_open)
    initial = (
        _per_stay(events.fluid_before, steps)
        + _sum_before(bolus, steps)
        + _sum(owner, earlier, steps.stays.size)
    )
    total = _running_total(initial, in_step, steps.owner)
    return {"input_4hourly": in_step, "input_total": total}


def urine_columns(events: Events, steps: Steps) -> dict[str, Floats]:
    """output_4hourly, output_total, and how many urine records each step has."""
    urine = moments(events.urine, steps, start="t", end="t", size="volume")
    in_step, n_records = _sum_in_steps(urine, steps)
    initial = _sum_before(urine, steps)
    if steps.rules.no_negative_urine:  # irrigant is taken off, and may be charted before its urine
        in_step, initial = in_step.clip(min=0), initial.clip(min=0)
    if steps.rules.add_preadmission_urine:
        initial = initial + _per_stay(events.urine_before, steps)
    return {
        "output_4hourly": in_step,
        "output_total": _running_total(initial, in_step, steps.owner),
        "n_urine_records": n_records.astype(np.float64),
    }


def vasopressor_columns(events: Events, steps: Steps) -> dict[str, Floats]:
    """median_dose_vaso and max_dose_vaso of each step, NaN where no drug runs."""
    given = running_doses(events.vasopressors, steps.rules)
    given = given.filter(pl.col("stay").is_in(steps.stays))
    given = given.sort("stay", "start", "end", "dose", "drug")
    doses = moments(given, steps, start="start", end="end", size="dose")
    event, position, t0 = _touched(doses, steps)
    running = pl.DataFrame(
        {
            "position": position,
            "drug": given["drug"].gather(event),
            "start": np.maximum(doses.start[event], t0),
            "end": doses.end[event],
            "dose": doses.size[event],
        }
    )
    if steps.rules.sum_concurrent_drugs:  # oddity 25: the sum whenever a rate begins in a step
        pairs = running.select("position", at="start").unique().join(running, on="position")
        at, start = pl.col("at"), pl.col("start")
        alive = pairs.filter((start <= at) & ((at < pl.col("end")) | (start == at)))
        by_drug = alive.group_by("position", "at", "drug").agg(pl.col("dose").max())
        total = pl.col("dose").sort_by("drug").sum()  # sorted: the same sum in any row order
        running = by_drug.group_by("position", "at").agg(total)
    dose = pl.col("dose")
    by_step = running.group_by("position").agg(median=dose.median(), max=dose.max())
    columns = {}
    for name in ("median", "max"):
        column = np.full(steps.number.size, np.nan)
        column[by_step["position"].to_numpy()] = by_step[name].to_numpy()
        columns[f"{name}_dose_vaso"] = column
    return columns


def rounded(value: pl.Expr) -> pl.Expr:
    """Three decimals, half away from zero, as PostgreSQL rounds `numeric`.

    A double such as 0.0005 lies a hair below the decimal it stands for; PostgreSQL sees 15
    significant digits, so a value within that hair of a half counts as a half.
    """
    scaled = value.abs() * 1000
    return value.sign() * (scaled + scaled * 1e-15 + 0.5).floor() / 1000


def norepinephrine_equivalent(rules: Rules) -> pl.Expr:
    """Dose in mcg/kg/min from `drug`, `rate` and `unit`; null for any other unit.

    The scripts read a vasopressin rate above 0.2 as per hour whatever its unit says (oddity 24).
    """
    potency, rate, unit = rules.potency, pl.col("rate"), pl.col("unit")
    factors = {
        "norepinephrine": 1.0,
        "epinephrine": potency.epinephrine,
        "phenylephrine": potency.phenylephrine,
        "dopamine": potency.dopamine,
    }
    factor = pl.col("drug").replace_strict(factors, default=None, return_dtype=pl.Float64)
    per_kg = pl.when(unit == PER_KG).then(rate * factor)
    catecholamine = per_kg.when(unit == PER_MINUTE).then(rate * factor / BODY_WEIGHT_KG)
    per_minute = rate * potency.vasopressin_per_unit_per_minute
    too_high = pl.lit(False) if rules.vasopressin_as_charted else rate > VASOPRESSIN_LIMIT
    vasopressin = (
        pl.when(too_high | (unit == UNITS_PER_HOUR))
        .then(per_minute / 60)
        .when(unit == UNITS_PER_MINUTE)
        .then(per_minute)
    )
    is_vasopressin = pl.col("drug") == "vasopressin"
    return rounded(pl.when(is_vasopressin).then(vasopressin).otherwise(catecholamine))


def running_doses(vasopressors: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """Doses and how long they run: stay, start, end, drug, dose.

    A rate charted at a moment counts there only, or is held until the drug's next one (oddity 25).
    """
    doses = vasopressors.with_columns(dose=norepinephrine_equivalent(rules)).drop_nulls("dose")
    charted = doses.filter(pl.col("end").is_null()).sort("stay", "drug", "start", "dose")
    end = pl.col("start") + rules.rate_hold_hours * HOUR
    if rules.rate_hold_hours:
        end = pl.min_horizontal(end, pl.col("start").shift(-1).over("stay", "drug"))
    parts = (doses.filter(pl.col("end").is_not_null()), charted.with_columns(end=end))
    return pl.concat([part.select("stay", "start", "end", "drug", "dose") for part in parts])
