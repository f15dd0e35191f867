"""Which stays a fit may look at: whole patients, chosen by a seed.

The rules: docs/cohort/rules.md section 19.
"""

import numpy as np
import polars as pl

from etips.cohorts.sepsis3.rules import Rules


def training_stays(stays: pl.DataFrame, rules: Rules) -> frozenset[int]:
    """Stays of the patients not held out; a patient is never on both sides.

    Args:
        stays: stay and patient.
        rules: `test_share` of the patients is held out, chosen by `split_seed`.
    """
    patients = stays["patient"].unique().sort()
    shuffled = np.random.default_rng(rules.split_seed).permutation(patients.to_numpy())
    held_out = shuffled[: round(rules.test_share * shuffled.size)]
    training = stays.filter(~pl.col("patient").is_in(pl.Series(held_out).implode()))
    return frozenset(training["stay"].to_list())
