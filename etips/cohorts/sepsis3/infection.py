"""Suspected infection and its onset (docs/cohort/rules.md sections 5 and 6)."""

from typing import Final, Literal

import polars as pl

from etips.cohorts.sepsis3.rules import AntibioticOrder, Rules
from etips.cohorts.sepsis3.variables import HOUR

_MARGIN: Final = 48 * HOUR
_ANTIBIOTIC_FIRST: Final = 24 * HOUR
_SAMPLE_FIRST: Final = 72 * HOUR


def attach_samples(microbiology: pl.DataFrame, stays: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """Give each microbiology row a stay of its patient; rows without one are left out.

    Args:
        microbiology: patient, admission, t.
        stays: stay, patient, admission, icu_in, icu_out of all stays.
        rules: `attach_nearest_stay`.

    Returns:
        stay and t.
    """
    rows = microbiology.with_row_index("row")
    if rules.attach_nearest_stay:
        return _nearest_stay(rows, stays, "patient").select("stay", "t")
    first = _by_window_or_only_stay(rows, stays, "patient")
    rest = rows.join(first, on="row", how="anti")
    second = rest.join(_only_stays(stays, "patient", "admission"), on=["patient", "admission"])
    return pl.concat([part.select("stay", "t") for part in (first, second)])


def attach_antibiotics(
    antibiotics: pl.DataFrame, stays: pl.DataFrame, rules: Rules
) -> pl.DataFrame:
    """Give each antibiotic row without a stay one of its admission; the others keep theirs.

    Returns:
        stay, t, entry and own (whether the stay id was the row's own).
    """
    has_own = pl.col("stay").is_not_null()
    own = antibiotics.filter(has_own).with_columns(own=True)
    rest = antibiotics.filter(~has_own).drop("stay").with_row_index("row")
    attach = _nearest_stay if rules.attach_nearest_stay else _by_window_or_only_stay
    attached = attach(rest, stays, "admission").with_columns(own=False)
    columns = ("stay", "t", "entry", "own")
    return pl.concat([part.select(columns) for part in (own, attached)])


def find_onsets(antibiotics: pl.DataFrame, samples: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """Onset of suspected infection of each stay that has one: stay, onset (section 6.1).

    Args:
        antibiotics: As `attach_antibiotics` gives them.
        samples: stay and t of microbiology and cultures together.
        rules: Order of the antibiotics, and whether only the nearest sample counts.
    """
    given = antibiotics.drop_nulls(["stay", "t"]).sort("stay", "t", "entry")
    taken = samples.drop_nulls().select("stay", sample="t").unique()
    taken = taken.sort("stay", "sample")
    if rules.test_all_pairs:
        onsets = _onsets_of_all_pairs(given, taken)
        return onsets.group_by("stay").agg(pl.col("onset").min()).sort("stay")
    onsets = _onsets_of_nearest(given, taken)
    order = _ORDERS[rules.antibiotic_order]
    firsts = onsets.sort("stay", *order).unique("stay", keep="first", maintain_order=True)
    return firsts.select("stay", "onset")


_ORDERS: Final = {
    AntibioticOrder.STAY_FIRST: (~pl.col("own"), pl.col("entry"), pl.col("t")),
    AntibioticOrder.DATE: (pl.col("t"), pl.col("entry")),
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
        by="stay",
        left_on=on,
        right_on="sample",
        strategy=side,
        coalesce=True,
        check_sortedness=False,
    )


def _by_window_or_only_stay(rows: pl.DataFrame, stays: pl.DataFrame, key: str) -> pl.DataFrame:
    """Last stay within 48 h; else the only stay there is, whatever the time (section 5)."""
    pairs = rows.join(stays.select(key, "stay", "icu_in", "icu_out"), on=key)
    within = (pl.col("icu_in") - _MARGIN <= pl.col("t")) & (
        pl.col("t") <= pl.col("icu_out") + _MARGIN
    )
    near = pairs.filter(within).sort("row", "icu_in", "stay")
    near = near.unique("row", keep="last", maintain_order=True).select(*rows.columns, "stay")
    far = rows.join(near, on="row", how="anti").join(_only_stays(stays, key), on=key)
    return pl.concat([near, far.select(near.columns)])


def _only_stays(stays: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Stays that are alone under their key."""
    return stays.filter(pl.len().over(keys) == 1).select(*keys, "stay")


def _nearest_stay(rows: pl.DataFrame, stays: pl.DataFrame, key: str) -> pl.DataFrame:
    """The stay nearest in time, at most 48 h away (oddity 13, corrected)."""
    pairs = rows.join(stays.select(key, "stay", "icu_in", "icu_out"), on=key)
    gap = pl.max_horizontal(
        pl.col("icu_in") - pl.col("t"), pl.col("t") - pl.col("icu_out"), pl.lit(0)
    )
    near = pairs.with_columns(gap=gap).filter(pl.col("gap") <= _MARGIN)
    near = near.sort("row", "gap", "icu_in", "stay")
    near = near.unique("row", keep="first", maintain_order=True)
    return near.select(*rows.columns, "stay")
