"""Raw rows of some stays, as both databases keep them once they are reduced to what is needed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import polars as pl

from etips.cohorts.engines.raw_rows import in_seconds, require_finite
from etips.cohorts.engines.store import Store

# Columns that a block is made of; what only the audit of units looks at stays on disk.
_COLUMNS: Final = {
    "chart": ("stay", "itemid", "t", "number", "device", "has_text", "ventilated", "extubated"),
    "labs": ("stay", "itemid", "t", "number", "specimen", "arterial"),
    "infusions_mv": (
        "stay", "amount", "rate", "rateuom", "statusdescription", "itemid", "start", '"end"',
    ),
    "infusions_cv": ("stay", "amount", "rate", "rateuom", "itemid", "t"),
    "urine": ("stay", "itemid", "t", "amount"),
    "procedures": ("stay", "itemid", "start", '"end"'),
}  # fmt: skip
_EMPTY: Final[dict[str, dict[str, type[pl.DataType]]]] = {
    "infusions_cv": {
        "stay": pl.Int64, "amount": pl.Float64, "rate": pl.Float64, "rateuom": pl.String,
        "itemid": pl.Int32, "t": pl.Int64,
    },
    "procedures": dict.fromkeys(("stay", "start", "end", "itemid"), pl.Int64),
}  # fmt: skip


@dataclass(frozen=True, repr=False)
class Block:
    """Raw rows of some stays; every frame has stay and times in seconds.

    Attributes:
        chart: t, itemid, number, device, has_text, ventilated, extubated.
        labs: t, itemid, number, specimen, arterial (whether the specimen is told to be so, where
            the row is one that tells it).
        infusions_mv: start, end, itemid, amount, rate, rateuom, statusdescription.
        infusions_cv: t, itemid, amount, rate, rateuom, of a charting system that told no end; empty
            where there is none.
        urine: t, itemid, amount; pre-admission urine among them.
        procedures: start, end, itemid; empty if they are not read.
    """

    chart: pl.DataFrame
    labs: pl.DataFrame
    infusions_mv: pl.DataFrame
    infusions_cv: pl.DataFrame
    urine: pl.DataFrame
    procedures: pl.DataFrame


def read_block(kept: Store, first: int, last: int, tables: Mapping[str, str]) -> Block:
    """Read the kept rows of the stays first..last.

    Args:
        kept: Where they are.
        first: The lowest id of a stay.
        last: The highest.
        tables: Raw table, for refusals, of each kept one that is there.
    """
    frames = {name: pl.DataFrame(schema=schema) for name, schema in _EMPTY.items()}
    for name, table in tables.items():
        columns = _COLUMNS[name]
        frames[name] = in_seconds(kept.rows(name, columns=columns, between=("stay", first, last)))
        require_finite(table, frames[name])
    return Block(**frames)


def read_cultures(
    kept: Store, *, charted: Iterable[int], tips: Iterable[int], procedures: Iterable[int]
) -> pl.DataFrame:
    """Cultures of all stays: stay, t.

    Args:
        kept: Where their rows are.
        charted: Items of the chart that say that one was taken.
        tips: Those of them that say it only if their value is 1.
        procedures: Procedures that took one.
    """
    rows = in_seconds(kept.rows("chart", among=("itemid", sorted(charted))))
    rows = rows.filter(~pl.col("itemid").is_in(sorted(tips)) | (pl.col("number") == 1))
    taken = rows.select("stay", "t")
    looked_for = sorted(procedures)
    if not looked_for:
        return taken
    done = in_seconds(kept.rows("procedures", among=("itemid", looked_for)))
    return pl.concat([taken, done.select("stay", t="start")])
