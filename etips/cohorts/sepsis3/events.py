"""What the rules ask of a database, in words of the bedside: the seam between the two.

A database says which rows of which tables are a heart rate, an antibiotic or a litre of saline; the
rules say what follows from it. Times are whole seconds since 1970, ids whole numbers.
"""

from dataclasses import dataclass
from typing import Final

import polars as pl

from etips.cohorts.sepsis3.variables import GRID

CONCEPT: Final = pl.Enum(GRID)
"""Type of the column `concept`: what was measured."""

PER_KG, PER_MINUTE = "mcg/kg/min", "mcg/min"
UNITS_PER_MINUTE, UNITS_PER_HOUR = "units/min", "units/hour"
RATE_UNITS: Final = (PER_KG, PER_MINUTE, UNITS_PER_MINUTE, UNITS_PER_HOUR)
"""Units of a vasopressor's rate; null stands for any other."""

DRUGS: Final = ("norepinephrine", "epinephrine", "phenylephrine", "dopamine", "vasopressin")


@dataclass(frozen=True, repr=False)
class Events:
    """What happened to some stays; every frame has `stay`.

    Attributes:
        measurements: t, concept, value, priority. A null value says that something was charted
            which is no number: it makes a row of the grid. Of several at one time the one of the
            highest priority, then of the highest value, counts.
        ventilation: start, end of invasive ventilation.
        vasopressors: start, end, drug, rate, unit; a null end says that the rate was charted at a
            moment, not for how long.
        boluses: t, volume in isotonic mL.
        infusions: start, end, rate in isotonic mL/h.
        fluid_before: volume given before the stay, at most one row a stay.
        urine: t, volume in mL; what was put in to rinse is negative.
        urine_before: volume before the stay, at most one row a stay.
    """

    measurements: pl.DataFrame
    ventilation: pl.DataFrame
    vasopressors: pl.DataFrame
    boluses: pl.DataFrame
    infusions: pl.DataFrame
    fluid_before: pl.DataFrame
    urine: pl.DataFrame
    urine_before: pl.DataFrame


@dataclass(frozen=True)
class ItemUnits:
    """What the rows with a number of one item, of adult stays with an antibiotic, have as a unit.

    `n_silent` of them give none, `n_unexpected` one that is not expected: `unexpected` has those as
    charted, with their rows, the most frequent first.
    """

    table: str
    item: int
    feature: str
    n_rows: int
    n_silent: int
    n_unexpected: int
    unexpected: dict[str, int]


@dataclass(frozen=True)
class Unread:
    """Rows of an item that is known and not read, so that a user sees whether it matters."""

    table: str
    item: int
    what: str
    n_rows: int


@dataclass(frozen=True, repr=False)
class OwnDefinition:
    """Stays with an onset (stay, onset), and those of them with Sepsis-3, as others define it."""

    onsets: pl.DataFrame
    septic: frozenset[int]
