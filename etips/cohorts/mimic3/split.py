"""Which stays a fit may look at: whole patients, chosen by a seed.

The rules: docs/cohort/rules.md section 19.
"""

import numpy as np
import polars as pl

from etips.cohorts.mimic3.config import CohortConfig


def training_stays(stays: pl.DataFrame, config: CohortConfig) -> frozenset[int]:
    """Stays of the patients not held out; a patient is never on both sides.

    Args:
        stays: icustay_id and subject_id.
        config: `test_share` of the patients is held out, chosen by `split_seed`.
    """
    patients = stays["subject_id"].unique().sort()
    shuffled = np.random.default_rng(config.split_seed).permutation(patients.to_numpy())
    held_out = shuffled[: round(config.test_share * shuffled.size)]
    training = stays.filter(~pl.col("subject_id").is_in(pl.Series(held_out).implode()))
    return frozenset(training["icustay_id"].to_list())
