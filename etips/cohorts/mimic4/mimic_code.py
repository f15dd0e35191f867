"""Sepsis-3 as mimic-code defines it: SOFA of 2 or more around a suspected infection."""

from collections.abc import Iterator
from typing import Final

import polars as pl

from etips.cohorts.engines.store import Store
from etips.cohorts.mimic4.hourly_rows import read_hourly
from etips.cohorts.mimic4.hourly_sofa import hourly_sofa
from etips.cohorts.sepsis3.events import OwnDefinition
from etips.cohorts.sepsis3.variables import HOUR

_BEFORE, _AFTER = 48 * HOUR, 24 * HOUR
_LEAST: Final = 2


def own_definition(suspected: pl.DataFrame, kept: Store, stays_per_block: int) -> OwnDefinition:
    """Onsets, and stays whose SOFA reaches 2 from 48 h before to 24 h after one.

    The onset of a stay with Sepsis-3 is its first one that has such a score around it, that of
    another stay its first one.

    Args:
        suspected: stay, antibiotic, culture, onset, from `suspicion.suspected`.
        kept: Where the hourly rows are.
        stays_per_block: How many stays are scored at a time.
    """
    septic = pl.concat(
        [pl.DataFrame(schema=suspected.schema), *_septic(suspected, kept, stays_per_block)]
    )
    first = suspected.sort("stay", "onset").unique("stay", keep="first", maintain_order=True)
    onsets = pl.concat([septic, first]).unique("stay", keep="first", maintain_order=True)
    return OwnDefinition(
        onsets=onsets.select("stay", "onset").sort("stay"), septic=frozenset(septic["stay"])
    )


def _septic(suspected: pl.DataFrame, kept: Store, size: int) -> Iterator[pl.DataFrame]:
    """The first suspicion of each stay with a score around it, a block of stays at a time."""
    stays = suspected["stay"].unique().sort()
    for block in (stays[at : at + size] for at in range(0, stays.len(), size)):
        scores = hourly_sofa(read_hourly(kept, int(block[0]), int(block[-1])))
        ill = scores.filter(pl.col("sofa") >= _LEAST).select("stay", "end")
        pairs = suspected.join(ill, on="stay")
        around = pl.col("end").is_between(pl.col("onset") - _BEFORE, pl.col("onset") + _AFTER)
        ordered = pairs.filter(around).sort("stay", "onset", "antibiotic", "culture", "end")
        first = ordered.unique("stay", keep="first", maintain_order=True)
        yield first.select(suspected.columns)
