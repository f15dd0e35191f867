"""Fluids, urine and vasopressors of each step (docs/cohort/rules.md section 12)."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from etips.cohorts.sepsis3.events import Events
from etips.cohorts.sepsis3.grid import Floats, Ints
from etips.cohorts.sepsis3.rules import Rules
from etips.cohorts.sepsis3.steps import Steps, steps_of
from etips.cohorts.sepsis3.variables import HOUR
from etips.cohorts.sepsis3.vasopressors import running_doses


@dataclass(frozen=True)
class Moments:
    """Events of stays that have steps: whose, when, how much; sorted so that sums repeat exactly.

    Attributes:
        owner: Position of the stay in `Steps.stays`, shape (n,).
        start: Seconds since the left edge of the stay's step 0, shape (n,).
        end: The same for the end of an interval; equal to `start` for a moment, shape (n,).
        size: Volume, rate or dose, shape (n,).
    """

    owner: Ints
    start: Ints
    end: Ints
    size: Floats


def moments(rows: pl.DataFrame, steps: Steps, *, start: str, end: str, size: str) -> Moments:
    """Turn rows with a stay into offsets from the first step of their stay."""
    events = rows.select(
        "stay",
        pl.col(start).alias("start"),
        pl.col(end).alias("end"),
        pl.col(size).alias("size"),
    ).drop_nulls()
    events = events.filter(pl.col("stay").is_in(steps.stays))
    events = events.sort("stay", "start", "end", "size", maintain_order=True)
    owner = np.searchsorted(steps.stays, events["stay"].to_numpy())
    beg = steps.beg[owner]
    return Moments(
        owner=owner,
        start=events["start"].to_numpy() - beg,
        end=events["end"].to_numpy() - beg,
        size=events["size"].to_numpy().astype(np.float64),
    )


def summed(group: Ints, size: Floats, n_groups: int) -> Floats:
    """Sum by group, added in the order given."""
    return np.bincount(group, size, minlength=n_groups).astype(np.float64)


def sum_in_steps(events: Moments, steps: Steps) -> tuple[Floats, Ints]:
    """Sum and number of the moments in each step."""
    event, number = steps_of(
        events.start, n_steps=steps.n_steps, half_open=steps.half_open, seconds=steps.seconds
    )
    position, exists = steps.find(events.owner[event], number)
    n = steps.number.size
    total = summed(position[exists], events.size[event[exists]], n)
    return total, np.bincount(position[exists], minlength=n).astype(np.int64)


def sum_before(events: Moments, steps: Steps) -> Floats:
    """Sum of the moments up to the first step of each stay; its edge counts in closed steps."""
    before = events.start < 0 if steps.half_open else events.start <= 0
    return summed(events.owner[before], events.size[before], steps.stays.size)


def touched(events: Moments, steps: Steps) -> tuple[Ints, Ints, Ints]:
    """Pairs of interval and existing step that touch: (interval, position, number of the step)."""
    low, high = np.minimum(events.start, events.end), np.maximum(events.start, events.end)
    if steps.half_open:
        first = low // steps.seconds
        last = np.maximum(first, -(-high // steps.seconds) - 1)
    else:
        first, last = -(-low // steps.seconds) - 1, high // steps.seconds
    first, last = first.clip(min=0), last.clip(max=steps.n_steps - 1)
    length = (last - first + 1).clip(min=0)
    event = np.repeat(np.arange(length.size), length)
    number = np.arange(event.size) - np.repeat(np.cumsum(length) - length, length) + first[event]
    position, exists = steps.find(events.owner[event], number)
    return event[exists], position[exists], number[exists]


def infused_volume(
    start: Floats, end: Floats, t0: Floats, t1: Floats, rate: Floats, *, half_open: bool
) -> Floats:
    """Volume that an infusion gives between t0 and t1 (seconds; rate in mL/h).

    Closed steps add every term of section 12 that applies, so that an infusion starting at t0 or
    ending at t1 counts twice, and four times if both hold (oddity 5).
    """
    if half_open:
        overlap = np.minimum(end, t1) - np.maximum(start, t0)
        volume: Floats = rate * np.maximum(overlap, 0) / HOUR
        return volume
    terms = (
        ((start >= t0) & (end <= t1), end - start),
        ((start <= t0) & (t0 <= end) & (end <= t1), end - t0),
        ((t0 <= start) & (start <= t1) & (end >= t1), t1 - start),
        ((start <= t0) & (end >= t1), t1 - t0),
    )
    seconds = np.zeros(start.shape)
    for applies, length in terms:
        seconds[applies] += length[applies]
    return rate * seconds / HOUR


def infusions_in_steps(infusions: Moments, steps: Steps) -> Floats:
    """Infused volume of each step."""
    event, position, number = touched(infusions, steps)
    t0 = (number * steps.seconds).astype(np.float64)
    volume = infused_volume(
        infusions.start[event].astype(np.float64),
        infusions.end[event].astype(np.float64),
        t0,
        t0 + steps.seconds,
        infusions.size[event],
        half_open=steps.half_open,
    )
    return summed(position, volume, steps.number.size)


def infusions_before(infusions: Moments, steps: Steps) -> Floats:
    """Infused volume from the beginning of time to the first step of each stay."""
    beginning = np.full(infusions.start.shape, -1e12)  # seconds; 30,000 years
    volume = infused_volume(
        infusions.start.astype(np.float64),
        infusions.end.astype(np.float64),
        beginning,
        np.zeros(infusions.start.shape),
        infusions.size,
        half_open=steps.half_open,
    )
    return summed(infusions.owner, volume, steps.stays.size)


def per_stay(rows: pl.DataFrame, steps: Steps) -> Floats:
    """`volume` by stay, 0 where a stay has none."""
    wanted = pl.DataFrame({"stay": steps.stays})
    joined = wanted.join(rows, on="stay", how="left", maintain_order="left")
    volume: Floats = joined["volume"].fill_null(0.0).to_numpy()
    return volume


def running_total(initial: Floats, in_step: Floats, owner: Ints) -> Floats:
    """Initial amount plus the sum over the steps that exist, up to and including each."""
    frame = pl.DataFrame({"owner": owner, "in_step": in_step})
    total: Floats = frame.select(pl.col("in_step").cum_sum().over("owner"))["in_step"].to_numpy()
    return initial[owner] + total


def fluid_columns(events: Events, steps: Steps) -> dict[str, Floats]:
    """input_4hourly and input_total of each step."""
    bolus = moments(events.boluses, steps, start="t", end="t", size="volume")
    infusion = moments(events.infusions, steps, start="start", end="end", size="rate")
    in_step = sum_in_steps(bolus, steps)[0] + infusions_in_steps(infusion, steps)
    initial = (
        per_stay(events.fluid_before, steps)
        + sum_before(bolus, steps)
        + infusions_before(infusion, steps)
    )
    return {
        "input_4hourly": in_step,
        "input_total": running_total(initial, in_step, steps.owner),
    }


def urine_columns(events: Events, steps: Steps, rules: Rules) -> dict[str, Floats]:
    """output_4hourly, output_total, and how many urine records each step has."""
    urine = moments(events.urine, steps, start="t", end="t", size="volume")
    in_step, n_records = sum_in_steps(urine, steps)
    initial = sum_before(urine, steps)
    if rules.no_negative_urine:  # irrigant is taken off, and may be charted before it comes out
        in_step, initial = in_step.clip(min=0), initial.clip(min=0)
    if rules.add_preadmission_urine:
        initial = initial + per_stay(events.urine_before, steps)
    return {
        "output_4hourly": in_step,
        "output_total": running_total(initial, in_step, steps.owner),
        "n_urine_records": n_records.astype(np.float64),
    }


def vasopressor_columns(events: Events, steps: Steps, rules: Rules) -> dict[str, Floats]:
    """median_dose_vaso and max_dose_vaso of each step, NaN where no drug runs."""
    given = running_doses(events.vasopressors, rules)
    given = given.filter(pl.col("stay").is_in(steps.stays))
    given = given.sort("stay", "start", "end", "dose", "drug")
    doses = moments(given, steps, start="start", end="end", size="dose")
    event, position, number = touched(doses, steps)
    running = pl.DataFrame(
        {
            "position": position,
            "drug": given["drug"].gather(event),
            "start": np.maximum(doses.start[event], number * steps.seconds),
            "end": doses.end[event],
            "dose": doses.size[event],
        }
    )
    if rules.sum_concurrent_drugs:
        running = _concurrent(running)
    by_step = running.group_by("position").agg(
        median=pl.col("dose").median(), max=pl.col("dose").max()
    )
    columns = {}
    for name in ("median", "max"):
        column = np.full(steps.number.size, np.nan)
        column[by_step["position"].to_numpy()] = by_step[name].to_numpy()
        columns[f"{name}_dose_vaso"] = column
    return columns


def _concurrent(running: pl.DataFrame) -> pl.DataFrame:
    """Sum of the drugs running whenever a rate begins in a step (oddity 25, corrected)."""
    at = running.select("position", at="start").unique()
    pairs = at.join(running, on="position")
    alive = (pl.col("start") <= pl.col("at")) & (
        (pl.col("at") < pl.col("end")) | (pl.col("start") == pl.col("at"))
    )
    by_drug = pairs.filter(alive).group_by("position", "at", "drug").agg(pl.col("dose").max())
    return by_drug.sort("drug").group_by("position", "at").agg(pl.col("dose").sum())
