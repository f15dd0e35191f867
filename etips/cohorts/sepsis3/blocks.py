"""Rows of steps of every candidate in both windows, block by block, kept on disk when done."""

from collections.abc import Callable

import polars as pl

from etips.cohorts.engines.store import Store
from etips.cohorts.sepsis3.events import Extraction
from etips.cohorts.sepsis3.footprint import require_memory
from etips.cohorts.sepsis3.rows import step_rows
from etips.progress import Progress, no_progress


def rows_of_both_windows(
    extraction: Extraction, people: pl.DataFrame, *, progress: Progress = no_progress
) -> tuple[pl.DataFrame, Callable[[], pl.DataFrame]]:
    """Rows of the first window, and a way to get those of the second.

    They are computed block by block of stays, so that memory stays bounded, and for all candidates:
    until imputation no stay depends on another, and so each block is read once. Where there are
    several, each is kept on disk when it is done, and a build that was killed goes on from there.

    Args:
        extraction: Gives the events, and says how many stays make a block.
        people: Demographics and onset of the candidates, sorted by stay.
        progress: Told after each block.
    """
    size = extraction.rules.stays_per_block
    blocks = [people[at : at + size] for at in range(0, people.height, size)]
    if len(blocks) == 1:
        first, second = _rows_of_block(extraction, blocks[0])
        return first, lambda: second
    kept, n_rows = extraction.kept, 0
    for number, stays in enumerate(blocks):
        name = f"rows_{number}"
        if not kept.has(name):
            for part, rows in enumerate(_rows_of_block(extraction, stays)):
                kept.put(f"{name}_{part}", rows.to_arrow(), append=False)
            kept.mark(name)
        n_rows += sum(kept.height(f"{name}_{part}") for part in (0, 1))
        likely = n_rows * len(blocks) // (number + 1)
        require_memory(max(n_rows, likely // 2))  # in good time; half, as blocks differ
        progress("rows of steps", (number + 1) / len(blocks))
    kept.shrink()  # imputing needs the memory
    return _stored_rows(kept, len(blocks), 0), lambda: _stored_rows(kept, len(blocks), 1)


def _stored_rows(kept: Store, n_blocks: int, part: int) -> pl.DataFrame:
    return pl.concat(
        kept.rows(f"rows_{number}_{part}").sort("icustayid", "bloc") for number in range(n_blocks)
    )


def _rows_of_block(
    extraction: Extraction, stays: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    events = extraction.events(int(stays["stay"][0]), int(stays["stay"][-1]))
    return (
        step_rows(events, stays, extraction.rules, second_pass=False),
        step_rows(events, stays, extraction.rules, second_pass=True),
    )
