"""Suspected infection and its onset (docs/cohort/rules.md sections 5 and 6)."""

from typing import Final, Literal

import polars as pl

from etips.cohorts.mimic3.columns import HOUR
from etips.cohorts.mimic3.config import AntibioticOrder, CohortConfig

_MARGIN: Final = 48 * HOUR
_ANTIBIOTIC_FIRST: Final = 24 * HOUR
_SAMPLE_FIRST: Final = 72 * HOUR


def attach_samples(
    microbiology: pl.DataFrame, stays: pl.DataFrame, config: CohortConfig
) -> pl.DataFrame:
    """Give each microbiology row a stay of its subject; rows without one are left out.

    Args:
        microbiology: subject_id, hadm_id, t.
        stays: icustay_id, subject_id, hadm_id, intime, outtime of all stays.
        config: `attach_nearest_stay`.

    Returns:
        icustay_id and t.
    """
    rows = microbiology.with_row_index("row")
    if config.attach_nearest_stay:
        return _nearest_stay(rows, stays, "subject_id").select("icustay_id", "t")
    first = _by_window_or_only_stay(rows, stays, "subject_id")
    rest = rows.join(first, on="row", how="anti")
    second = rest.join(_only_stays(stays, "subject_id", "hadm_id"), on=["subject_id", "hadm_id"])
    return pl.concat([part.select("icustay_id", "t") for part in (first, second)])


def attach_antibiotics(
    antibiotics: pl.DataFrame, stays: pl.DataFrame, config: CohortConfig
) -> pl.DataFrame:
    """Give each antibiotic row without a stay one of its admission; the others keep theirs.

    Returns:
        icustay_id, t, row_id and own (whether the stay id was the row's own).
    """
    has_own = pl.col("icustay_id").is_not_null()
    own = antibiotics.filter(has_own).with_columns(own=True)
    rest = antibiotics.filter(~has_own).drop("icustay_id").with_row_index("row")
    attach = _nearest_stay if config.attach_nearest_stay else _by_window_or_only_stay
    found = attach(rest, stays, "hadm_id").with_columns(own=False)
    columns = ("icustay_id", "t", "row_id", "own")
    return pl.concat([part.select(columns) for part in (own, found)])


def find_onsets(
    antibiotics: pl.DataFrame, samples: pl.DataFrame, config: CohortConfig
) -> pl.DataFrame:
    """Onset of suspected infection of each stay that has one: icustay_id, onset (section 6.1).

    Args:
        antibiotics: As `attach_antibiotics` gives them.
        samples: icustay_id and t of microbiology and cultures together.
        config: Order of the antibiotics, and whether only the nearest sample counts.
    """
    given = antibiotics.drop_nulls(["icustay_id", "t"]).sort("icustay_id", "t", "row_id")
    taken = samples.drop_nulls().select("icustay_id", sample="t").unique()
    taken = taken.sort("icustay_id", "sample")
    if config.test_all_pairs:
        onsets = _onsets_of_all_pairs(given, taken)
        return onsets.group_by("icustay_id").agg(pl.col("onset").min()).sort("icustay_id")
    onsets = _onsets_of_nearest(given, taken)
    order = _ORDERS[config.antibiotic_order]
    firsts = onsets.sort("icustay_id", *order).unique(
        "icustay_id", keep="first", maintain_order=True
    )
    return firsts.select("icustay_id", "onset")


_ORDERS: Final = {
    AntibioticOrder.STAY_FIRST: (~pl.col("own"), pl.col("row_id"), pl.col("t")),
    AntibioticOrder.DATE: (pl.col("t"), pl.col("row_id")),
}


def _onsets_of_nearest(given: pl.DataFrame, taken: pl.DataFrame) -> pl.DataFrame:
    """Test each antibiotic against the sample nearest to it; of two equally near, the earlier."""
    pairs = _asof(_asof(given, taken, "t", side="backward"), taken, "t", side="forward")
    earlier = pl.col("t") - pl.col("before")
    later = pl.col("after") - pl.col("t")
    use_before = (earlier <= later).fill_null(pl.col("before").is_not_null())
    onset = (
        pl.when(~use_before & (later <= _ANTIBIOTIC_FIRST))
        .then(pl.col("t"))
        .when(use_before & (earlier <= _SAMPLE_FIRST))
        .then(pl.col("before"))
    )
    return pairs.with_columns(onset=onset).drop_nulls("onset")


def _onsets_of_all_pairs(given: pl.DataFrame, taken: pl.DataFrame) -> pl.DataFrame:
    """Earliest onset that each antibiotic makes with any sample (oddity 11, corrected)."""
    opened = given.with_columns(opens=pl.col("t") - _SAMPLE_FIRST)
    pairs = _asof(opened, taken, "opens", side="forward")
    onset = pl.when(pl.col("after") <= pl.col("t") + _ANTIBIOTIC_FIRST).then(
        pl.min_horizontal("after", "t")
    )
    return pairs.with_columns(onset=onset).drop_nulls("onset")


def _asof(
    left: pl.DataFrame, taken: pl.DataFrame, on: str, *, side: Literal["backward", "forward"]
) -> pl.DataFrame:
    """Add `before` or `after`: the nearest sample of the stay on one side, equal times included.

    Both frames must be sorted by time within a stay, since Polars cannot check it.
    """
    name = {"backward": "before", "forward": "after"}[side]
    return left.join_asof(
        taken.with_columns(pl.col("sample").alias(name)),
        by="icustay_id",
        left_on=on,
        right_on="sample",
        strategy=side,
        coalesce=True,
        check_sortedness=False,
    )


def _by_window_or_only_stay(rows: pl.DataFrame, stays: pl.DataFrame, key: str) -> pl.DataFrame:
    """Last stay within 48 h; else the only stay there is, whatever the time (section 5)."""
    pairs = rows.join(stays.select(key, "icustay_id", "intime", "outtime"), on=key)
    within = (pl.col("intime") - _MARGIN <= pl.col("t")) & (
        pl.col("t") <= pl.col("outtime") + _MARGIN
    )
    near = pairs.filter(within).sort("row", "intime", "icustay_id")
    near = near.unique("row", keep="last", maintain_order=True).select(*rows.columns, "icustay_id")
    far = rows.join(near, on="row", how="anti").join(_only_stays(stays, key), on=key)
    return pl.concat([near, far.select(near.columns)])


def _only_stays(stays: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Stays that are alone under their key."""
    return stays.filter(pl.len().over(keys) == 1).select(*keys, "icustay_id")


def _nearest_stay(rows: pl.DataFrame, stays: pl.DataFrame, key: str) -> pl.DataFrame:
    """The stay nearest in time, at most 48 h away (oddity 13, corrected)."""
    pairs = rows.join(stays.select(key, "icustay_id", "intime", "outtime"), on=key)
    gap = pl.max_horizontal(
        pl.col("intime") - pl.col("t"), pl.col("t") - pl.col("outtime"), pl.lit(0)
    )
    near = pairs.with_columns(gap=gap).filter(pl.col("gap") <= _MARGIN)
    near = near.sort("row", "gap", "intime", "icustay_id")
    near = near.unique("row", keep="first", maintain_order=True)
    return near.select(*rows.columns, "icustay_id")
