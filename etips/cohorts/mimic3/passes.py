"""Four-hour rows of every candidate in both windows, block by block, kept on disk when done."""

from collections.abc import Callable

import polars as pl

from etips.cohorts.mimic3 import extract
from etips.cohorts.mimic3.concepts import Items
from etips.cohorts.mimic3.config import CohortConfig
from etips.cohorts.mimic3.memory import require_memory
from etips.cohorts.mimic3.rows import four_hour_rows
from etips.cohorts.mimic3.source import Source

Progress = Callable[[str, float], None]
"""Told what is being done and which share of it is behind."""


def no_progress(what: str, share: float) -> None:
    """Tell nobody."""


def rows_of_both_passes(
    source: Source,
    people: pl.DataFrame,
    items: Items,
    config: CohortConfig,
    *,
    progress: Progress = no_progress,
) -> tuple[pl.DataFrame, Callable[[], pl.DataFrame]]:
    """Four-hour rows of the first window, and a way to get those of the second.

    They are computed block by block of stays, so that memory stays bounded, and for all candidates:
    until imputation no stay depends on another, and so each block is read once. Where there are
    several, each is kept on disk when it is done, and a build that was killed goes on from there.

    Args:
        source: Where the extracted rows are kept.
        people: Demographics and onset of the candidates, sorted by icustay_id.
        items: Which column each item belongs to.
        config: The switches, and how many stays make a block.
        progress: Told after each block.
    """
    blocks = [
        people[at : at + config.stays_per_block]
        for at in range(0, people.height, config.stays_per_block)
    ]
    if len(blocks) == 1:
        first, second = _rows_of_block(source, blocks[0], items, config)
        return first, lambda: second
    n_rows = 0
    for number, stays in enumerate(blocks):
        name = f"rows_{number}"
        if not source.kept.has(name):
            for part, rows in enumerate(_rows_of_block(source, stays, items, config)):
                source.kept.put(f"{name}_{part}", rows.to_arrow(), append=False)
            source.kept.mark(name)
        n_rows += sum(source.kept.height(f"{name}_{part}") for part in (0, 1))
        likely = n_rows * len(blocks) // (number + 1)
        require_memory(max(n_rows, likely // 2))  # in good time; half, as blocks differ
        progress("four-hour rows", (number + 1) / len(blocks))
    return _stored_rows(source, len(blocks), 0), lambda: _stored_rows(source, len(blocks), 1)


def _stored_rows(source: Source, n_blocks: int, part: int) -> pl.DataFrame:
    return pl.concat(
        source.kept.rows(f"rows_{number}_{part}").sort("icustayid", "bloc")
        for number in range(n_blocks)
    )


def _rows_of_block(
    source: Source, stays: pl.DataFrame, items: Items, config: CohortConfig
) -> tuple[pl.DataFrame, pl.DataFrame]:
    procedures = bool(items.procedure_cultures or items.procedure_ventilation)
    first, last = int(stays["icustay_id"][0]), int(stays["icustay_id"][-1])
    block = extract.read_block(source, first, last, procedures=procedures)
    return (
        four_hour_rows(block, stays, items, config, second_pass=False),
        four_hour_rows(block, stays, items, config, second_pass=True),
    )
