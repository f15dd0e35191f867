"""Events of blocks of stays to rows of steps before imputation (sections 7 to 12)."""

from collections.abc import Callable
from typing import Final

import numpy as np
import polars as pl

from etips.cohorts.engines.store import Store
from etips.cohorts.sepsis3.doses import fluid_columns, urine_columns, vasopressor_columns
from etips.cohorts.sepsis3.events import Events
from etips.cohorts.sepsis3.grid import (
    INDEX,
    cross_estimate,
    drop_outliers,
    hold_all,
    make_grid,
    make_steps,
)
from etips.cohorts.sepsis3.rules import Rules
from etips.cohorts.sepsis3.variables import CHARTED, DELAY, DEMOGRAPHICS, HOUR, PASS_1_COLUMNS
from etips.errors import ResourceError
from etips.machine import free_memory
from etips.progress import Progress, no_progress

BYTES_PER_ROW: Final = 4_000  # of either pass, at the highest point; measured, see the benchmarks
_NEVER: Final = 2**52  # seconds; later than any stay


def rows_of_both_windows(
    read: Callable[[int, int], Events],
    people: pl.DataFrame,
    rules: Rules,
    kept: Store,
    *,
    progress: Progress = no_progress,
) -> tuple[pl.DataFrame, Callable[[], pl.DataFrame]]:
    """Rows of the first window of the candidates `people`, and a way to get those of the second.

    They are computed block by block of stays, so that memory stays bounded: until imputation no
    stay depends on another, and so each block is read once. Where there are several, each is kept
    on disk when it is done, and a build that was killed goes on from there. `read` gives the events
    of the stays from one id to another.
    """

    def both(stays: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        events = read(int(stays["stay"][0]), int(stays["stay"][-1]))
        return (
            step_rows(events, stays, rules, second_pass=False),
            step_rows(events, stays, rules, second_pass=True),
        )

    size, n_rows = rules.stays_per_block, 0
    blocks = [people[at : at + size] for at in range(0, people.height, size)]
    if len(blocks) == 1:
        first, second = both(blocks[0])
        return first, lambda: second
    for number, stays in enumerate(blocks):
        name = f"rows_{number}"
        if not kept.has(name):
            for part, rows in enumerate(both(stays)):
                kept.put(f"{name}_{part}", rows.to_arrow(), append=False)
            kept.mark(name)
        n_rows += sum(kept.height(f"{name}_{part}") for part in (0, 1))
        likely = n_rows * len(blocks) // (number + 1)
        require_memory(max(n_rows, likely // 2))  # in good time; half, as blocks differ
        progress("rows of steps", (number + 1) / len(blocks))
    kept.shrink()  # imputing needs the memory

    def stored(part: int) -> pl.DataFrame:
        names = (f"rows_{number}_{part}" for number in range(len(blocks)))
        return pl.concat(kept.rows(name).sort("icustayid", "bloc") for name in names)

    return stored(0), lambda: stored(1)


def require_memory(n_rows: int) -> None:
    """Refuse to go on with rows, of both passes together, that would not fit into memory.

    The libraries below do not all survive a failed allocation: some end the process without a word.
    So a build that could not finish is refused in one line before it is half done.
    """
    needed, free = n_rows * BYTES_PER_ROW, free_memory()
    if free is not None and needed > free:
        raise ResourceError(
            "cohort",
            f"needs about {needed / 2**30:.1f} GiB of memory for {n_rows:,} rows, "
            f"and {free / 2**30:.1f} GiB are free",
            fix="Use a machine with more.",
        )


def step_rows(
    events: Events, stays: pl.DataFrame, rules: Rules, *, second_pass: bool
) -> pl.DataFrame:
    """Rows of one pass, sorted by stay and block: `PASS_1_COLUMNS` and n_urine_records.

    Missing values are NaN. `stays` are demographics and `onset`, sorted by stay; the second pass
    has another window and two more outlier limits.
    """
    window = rules.window_2 if second_pass else rules.window_1
    windows = stays.select(
        "stay",
        opens=pl.col("onset") - int(window.before * HOUR),
        closes=pl.col("onset") + int(window.after * HOUR),
    )
    grid = make_grid(events, windows, rules)
    drop_outliers(grid, rules, second_pass=second_pass)
    cross_estimate(grid, rules)
    hold_all(grid, rules)
    position = np.searchsorted(stays["stay"].to_numpy(), grid.stay)
    anchor = windows["opens"].to_numpy()[position] if rules.anchor_at_window else None
    opening = None
    if rules.open_steps_in_icu_only:  # oddity 15
        enters, leaves = stays["icu_in"], stays["icu_out"].fill_null(_NEVER)
        opening = (enters.to_numpy()[position] <= grid.t) & (grid.t <= leaves.to_numpy()[position])
    steps = make_steps(grid, rules, anchor=anchor, opening=opening)
    volumes = {
        **vasopressor_columns(events, steps),
        **fluid_columns(events, steps),
        **urine_columns(events, steps),
    }
    owner = np.searchsorted(stays["stay"].to_numpy(), steps.stays)[steps.owner]
    known = [name for name in DEMOGRAPHICS if name != DELAY]
    rows = stays.select(*known, "discharge")[owner].with_columns(
        bloc=pl.Series(steps.number + 1),
        icustayid=pl.Series(steps.stays[steps.owner]),
        charttime=pl.Series(steps.beg[steps.owner] + rules.step_seconds * steps.number),
        **{DELAY: (pl.col("discharge") - pl.Series(steps.last[steps.owner])) / HOUR},
        **{name: pl.Series(steps.means[INDEX[name]]) for name in CHARTED},
        **{name: pl.Series(values) for name, values in volumes.items()},
        Shock_Index=pl.lit(np.nan),
        PaO2_FiO2=pl.lit(np.nan),
    )
    rows = rows.with_columns(cumulated_balance=pl.col("input_total") - pl.col("output_total"))
    return rows.select(*PASS_1_COLUMNS, "n_urine_records")
