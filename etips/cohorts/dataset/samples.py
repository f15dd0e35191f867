"""Loss, and which steps are samples (docs/cohort/rules.md section 18)."""

import numpy as np
import polars as pl

from etips.data.decisions import sofa_change_loss


def add_samples(table: pl.DataFrame) -> pl.DataFrame:
    """Add rows_before, the next SOFA by block and by row, both losses, and the flags A, B, C.

    A: not the first row, and the next block exists (the rule of section 18.2). B: the previous
    block exists as well. C: not the first row, and there is a next row.

    Args:
        table: icustayid, bloc, SOFA, sorted by stay and block.
    """
    stay = "icustayid"
    next_bloc = pl.col("bloc").shift(-1).over(stay)
    last_bloc = pl.col("bloc").shift(1).over(stay)
    next_sofa = pl.col("SOFA").shift(-1).over(stay)
    adjacent = (next_bloc == pl.col("bloc") + 1).fill_null(False)
    rows = table.with_columns(
        rows_before=pl.int_range(pl.len()).over(stay),
        SOFA_next_bloc=pl.when(adjacent).then(next_sofa),
        SOFA_next_row=next_sofa,
    )
    later = pl.col("rows_before") > 0
    rows = rows.with_columns(
        sample_A=later & adjacent,
        sample_B=later & adjacent & (last_bloc == pl.col("bloc") - 1).fill_null(False),
        sample_C=later & pl.col("SOFA_next_row").is_not_null(),
    )
    sofa = rows["SOFA"].to_numpy().astype(np.float64)
    return rows.with_columns(
        pl.Series(
            f"loss_{end}",
            sofa_change_loss(
                sofa, rows[f"SOFA_{end}"].cast(pl.Float64).fill_null(np.nan).to_numpy()
            ),
        ).fill_nan(None)
        for end in ("next_bloc", "next_row")
    )
