"""Episodes of ventilation through a tube as the concepts of mimic-code define them."""

from typing import Final

import polars as pl

from etips.cohorts.mimic4 import hourly_rows as rows
from etips.cohorts.sepsis3.variables import HOUR

_LONGEST_GAP: Final = 14  # hours on the clock, after which an episode is a new one
_TRACHEOSTOMY: Final = ("tracheostomy tube", "trach mask")
_TUBE: Final = ("endotracheal tube",)
_MODES: Final = (
    "(s) cmv", "aprv", "aprv/biphasic+apnpress", "aprv/biphasic+apnvol", "apv (cmv)", "ambient",
    "apnea ventilation", "cmv", "cmv/assist", "cmv/assist/autoflow", "cmv/autoflow", "cpap/pps",
    "cpap/psv", "cpap/psv+apn tcpl", "cpap/psv+apnpres", "cpap/psv+apnvol", "mmv", "mmv/autoflow",
    "mmv/psv", "mmv/psv/autoflow", "p-cmv", "pcv+", "pcv+/psv", "pcv+assist", "pres/ac", "prvc/ac",
    "prvc/simv", "psv/sbt", "simv", "simv/autoflow", "simv/pres", "simv/psv", "simv/psv/autoflow",
    "simv/vol", "synchron master", "synchron slave", "vol/ac",
)  # fmt: skip
_HAMILTON_MODES: Final = (
    "aprv", "apv (cmv)", "ambient", "(s) cmv", "p-cmv", "simv", "apv (simv)", "p-simv", "vs", "asv",
)  # fmt: skip
_MASKS: Final = ("bipap mask", "cpap mask")
_MASK_MODES: Final = ("duopap", "niv", "niv-st")
_HIGH_FLOW: Final = ("high flow nasal cannula",)
_OXYGEN: Final = (
    "non-rebreather", "face tent", "aerosol-cool", "venti mask", "medium conc mask",
    "ultrasonic neb", "vapomist", "oxymizer", "high flow neb", "nasal cannula",
)  # fmt: skip
_NOTHING: Final = ("none",)


def invasive_ventilation(chart: pl.DataFrame) -> pl.DataFrame:
    """Episodes of invasive ventilation: stay, start, end.

    Args:
        chart: stay, t, itemid, text (small letters, no blanks around) of the hourly rows.
    """
    kinds = kinds_of_support(chart)
    of_stay, of_kind = ["stay"], ["stay", "kind"]
    gap = pl.col("t") // HOUR - pl.col("t").shift(1).over(of_kind) // HOUR
    new = pl.col("kind").ne_missing(pl.col("kind").shift(1).over(of_stay)) | (gap >= _LONGEST_GAP)
    following = pl.col("t").shift(-1).over(of_stay)
    lasts = following // HOUR - pl.col("t") // HOUR < _LONGEST_GAP
    marked = kinds.with_columns(
        episode=new.fill_null(False).cast(pl.Int64).cum_sum().over(of_stay),
        until=pl.when(lasts.fill_null(False)).then(following).otherwise(pl.col("t")),
    )
    episodes = marked.group_by("stay", "episode").agg(
        pl.col("kind").first(), start=pl.col("t").min(), latest=pl.col("t").max(),
        end=pl.col("until").max(),
    )  # fmt: skip
    lasting = episodes.filter(
        (pl.col("kind") == "invasive") & (pl.col("start") != pl.col("latest"))
    )
    return lasting.select("stay", "start", "end").sort("stay", "start")


def kinds_of_support(chart: pl.DataFrame) -> pl.DataFrame:
    """Kind of support at every time that tells one: stay, t, kind; sorted.

    A device counts where a flow of oxygen is charted with it; of several, the last by name.
    """
    item, text = pl.col("itemid"), pl.col("text")
    told = chart.group_by("stay", "t").agg(
        device=text.filter(item == rows.DEVICE).max(),
        mode=text.filter(item == rows.MODE).max(),
        hamilton=text.filter(item == rows.HAMILTON_MODE).max(),
        flow=(item.is_in(rows.FLOWS) & text.is_not_null()).any(),
    )
    device = pl.when("flow").then(pl.col("device"))
    mode, hamilton = pl.col("mode"), pl.col("hamilton")
    kinds = (
        ("tracheostomy", device.is_in(_TRACHEOSTOMY)),
        ("invasive", device.is_in(_TUBE)),
        ("invasive", mode.is_in(_MODES)),
        ("invasive", hamilton.is_in(_HAMILTON_MODES)),
        ("mask", device.is_in(_MASKS)),
        ("mask", hamilton.is_in(_MASK_MODES)),
        ("high flow", device.is_in(_HIGH_FLOW)),
        ("oxygen", device.is_in(_OXYGEN)),
        ("none", device.is_in(_NOTHING)),
    )
    kind = pl.coalesce(pl.when(holds.fill_null(False)).then(pl.lit(name)) for name, holds in kinds)
    return (
        told.with_columns(kind=kind)
        .drop_nulls("kind")
        .select("stay", "t", "kind")
        .sort("stay", "t")
    )
