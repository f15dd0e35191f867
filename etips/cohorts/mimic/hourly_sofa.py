"""SOFA by the hour, and ventilation, as the concepts of mimic-code define them.

The rules: docs/cohort/mimic4.md. Raw rows are kept beside those of the cohort. An hour ends on the
clock, and what happens at its end belongs to it. A part of the score is the worst of the last 24
hours; one that was never measured counts 0.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import ibis  # type: ignore[import-untyped, unused-ignore]
import ibis.expr.types as ir  # type: ignore[import-untyped, unused-ignore]
import polars as pl

from etips.cohorts.engines.sources import Source
from etips.cohorts.engines.store import Store, require_finite
from etips.cohorts.mimic.extraction import is_arterial
from etips.cohorts.mimic.items import read_list
from etips.cohorts.sepsis3.variables import HOUR

HEART_RATE, FIO2, DEVICE, MODE, HAMILTON_MODE = 220045, 223835, 226732, 223849, 229314
EYE, VERBAL, MOTOR = 220739, 223900, 223901
MEAN_PRESSURES: Final = (220052, 220181, 225312)
FLOWS: Final = (223834, 227582, 227287)
_CHARTED: Final = (
    HEART_RATE, FIO2, DEVICE, MODE, HAMILTON_MODE, EYE, VERBAL, MOTOR, *MEAN_PRESSURES, *FLOWS,
)  # fmt: skip
SPECIMEN_ITEM: Final = 52033  # its text says where a blood gas was taken
OXYGEN_PRESSURE, GAS_FIO2, BILIRUBIN, CREATININE, PLATELETS = 50821, 50816, 50885, 50912, 51265
_MEASURED: Final = (OXYGEN_PRESSURE, GAS_FIO2, BILIRUBIN, CREATININE, PLATELETS)
EPINEPHRINE, NOREPINEPHRINE, DOPAMINE, DOBUTAMINE = 221289, 221906, 221662, 221653
_GIVEN: Final = (EPINEPHRINE, NOREPINEPHRINE, DOPAMINE, DOBUTAMINE)
IRRIGANT: Final = 227488
_PASSED: Final = (
    226559, 226560, 226561, 226584, 226563, 226564, 226565, 226567, 226557, 226558, IRRIGANT,
    227489,
)  # fmt: skip
# A score counts from two days before the onset, which lies up to three days before the stay.
_DAYS_BEFORE, _DAYS_AFTER = 7, 3
# A heart rate further off than this is a slip and makes no hours.
_MONTH: Final = ibis.interval(months=1)
_TABLES: Final = {
    "hourly_chart": "chartevents",
    "hourly_labs": "labevents",
    "hourly_given": "inputevents",
    "hourly_urine": "outputevents",
}
NAMES: Final = tuple(_TABLES)

Tables = Mapping[str, ibis.Table]
"""Raw tables by name, their column with the stay called `stay`."""

PARTS: Final = ("respiration", "coagulation", "liver", "cardiovascular", "cns", "renal")
_BEFORE: Final = 24  # hours before the first heart rate that are looked at
_WINDOW: Final = 24
_KEY: Final = ("stay", "hr")
_LONGEST_GAP: Final = 14  # hours on the clock, after which an episode is a new one
# Texts of a device or a mode and the kind of support that each is, the strongest kind first.
_SUPPORT: Final = {
    name: [row["text"] for row in read_list("mimic_code") if row["list"] == name]
    for name in (
        "device tracheostomy", "device invasive", "mode invasive", "hamilton invasive",
        "device mask", "hamilton mask", "device high flow", "device oxygen", "device none",
    )
}  # fmt: skip


def store_hourly(source: Source, tables: Tables, stays: list[int]) -> None:
    """Keep the rows of some stays."""
    wanted = ibis.memtable(pl.DataFrame({"stay": pl.Series(stays, dtype=pl.Int64)}))
    for name, query in zip(NAMES, (_chart, _labs, _given, _urine), strict=True):
        source.store(query(tables, wanted), name, by="stay")


def read_hourly(kept: Store, first: int, last: int) -> dict[str, pl.DataFrame]:
    """The kept rows of the stays first..last, times in seconds, by name."""
    frames = {name: kept.rows(name, between=("stay", first, last)).unique() for name in NAMES}
    for name, frame in frames.items():
        require_finite(_TABLES[name], frame)
    return frames


def _near(tables: Tables, stays: ibis.Table) -> ibis.Table:
    """Stays with their patient, their admission, and the time around them that is looked at."""
    icu = tables["icustays"]
    return icu.filter(icu.stay.isin(stays.stay)).select(
        "subject_id", "stay", own=icu.hadm_id,
        earliest=icu.intime - _MONTH, latest=icu.outtime + _MONTH,
        opens=icu.intime - ibis.interval(days=_DAYS_BEFORE),
        closes=icu.outtime + ibis.interval(days=_DAYS_AFTER),
    )  # fmt: skip


def _chart(tables: Tables, stays: ibis.Table) -> ibis.Table:
    """Charted rows of a stay, and inspired oxygen of the patient's other stays near it.

    A row without a value counts too: a heart rate makes hours, a part of the coma scale a time.
    """
    rows, icu = tables["chartevents"], tables["icustays"]
    known = rows.filter(rows.itemid.isin(_CHARTED) & rows.charttime.notnull())
    other = icu.select("subject_id", other="stay")
    pairs = other.join(_near(tables, stays), "subject_id").drop("subject_id")
    joined = known.rename(other="stay").join(pairs, "other")
    near = (joined.itemid == FIO2) & joined.charttime.between(joined.opens, joined.closes)
    beat = (joined.charttime > joined.earliest) & (joined.charttime < joined.latest)
    own = (joined.other == joined.stay) & ((joined.itemid != HEART_RATE) | beat)
    kept = joined.filter(own | near)
    return kept.select(
        "stay",
        itemid=kept.itemid.cast("int32"),
        t=kept.charttime,
        number=kept.valuenum,
        text=kept.value.strip().lower().nullif(""),
    )


def _labs(tables: Tables, stays: ibis.Table) -> ibis.Table:
    """Results of the patient near a stay, and whether they name its admission."""
    labs = tables["labevents"]
    tells = labs.itemid == SPECIMEN_ITEM
    counts = tells | (labs.itemid.isin(_MEASURED) & labs.valuenum.notnull())
    known = labs.filter(counts & labs.charttime.notnull())
    joined = known.join(_near(tables, stays), "subject_id")
    within = joined.filter(joined.charttime.between(joined.opens, joined.closes))
    arterial = (within.itemid == SPECIMEN_ITEM) & is_arterial(within.value).fill_null(False)
    return within.select(
        "stay",
        itemid=within.itemid.cast("int32"),
        t=within.charttime,
        number=within.valuenum,
        specimen=within.specimen_id,
        arterial=arterial,
        own=(within.hadm_id == within.own).fill_null(False),
    )


def _given(tables: Tables, stays: ibis.Table) -> ibis.Table:
    """Rates of drugs; milligrams are converted for norepinephrine alone."""
    rows = tables["inputevents"]
    kept = rows.itemid.isin(_GIVEN) & rows.stay.isin(stays.stay) & rows.rate.notnull()
    converted, _ = in_micrograms(rows)
    rate = (rows.itemid == NOREPINEPHRINE).ifelse(converted, rows.rate)
    return rows.filter(kept & rows.starttime.notnull() & rows.endtime.notnull()).select(
        "stay",
        itemid=rows.itemid.cast("int32"),
        start=rows.starttime,
        end=rows.endtime,
        rate=rate,
    )


def _urine(tables: Tables, stays: ibis.Table) -> ibis.Table:
    """Urine by time; what was put in to rinse is taken off."""
    rows = tables["outputevents"]
    kept = rows.itemid.isin(_PASSED) & rows.stay.isin(stays.stay)
    known = rows.filter(kept & rows.charttime.notnull())
    into = (known.itemid == IRRIGANT) & (known.value > 0)
    signed = known.mutate(volume=into.ifelse(-known.value, known.value))
    return signed.group_by("stay", t=signed.charttime).aggregate(volume=signed.volume.sum())


def in_micrograms(rows: ibis.Table) -> tuple[ir.Value, ir.Value]:
    """Rate and unit, milligrams as micrograms.

    With a weight of 1 kg the rate was meant in micrograms and its unit is a slip.
    """
    milligrams = (rows.rateuom == "mg/kg/min").fill_null(False)
    slip = (rows.patientweight == 1).fill_null(False)
    rate = ibis.cases((milligrams & ~slip, rows.rate * 1000), else_=rows.rate)
    return rate, milligrams.ifelse("mcg/kg/min", rows.rateuom)


def hourly_sofa(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Scores of every hour of some stays: stay, hr, end, the six parts and sofa."""
    chart, labs, given, urine = (frames[name] for name in NAMES)
    hours = stay_hours(chart)
    inputs = (
        _worst(hours, mean_pressures(chart), pressure=pl.col("value").min()),
        _worst(hours, coma_scores(chart), gcs=pl.col("value").min()),
        _worst(hours, _own(labs, BILIRUBIN), bilirubin=pl.col("value").max()),
        _worst(hours, _own(labs, CREATININE, most=150), creatinine=pl.col("value").max()),
        _worst(hours, _own(labs, PLATELETS), platelets=pl.col("value").min()),
        _ratios(hours, chart, labs),
        _worst(hours, daily_urine(urine, chart), urine=pl.col("value").max()),
        _rates(hours, given),
    )
    table = hours
    for part in inputs:
        table = table.join(part, on=_KEY, how="left")
    scored = table.sort(_KEY).with_columns(**_scores())
    worst = (pl.col(part).rolling_max(_WINDOW, min_samples=1).over("stay") for part in PARTS)
    scored = scored.with_columns(part.fill_null(0) for part in worst)
    scored = scored.with_columns(sofa=pl.sum_horizontal(PARTS)).filter(pl.col("hr") >= 0)
    return scored.select("stay", "hr", "end", *PARTS, "sofa")


def stay_hours(chart: pl.DataFrame) -> pl.DataFrame:
    """Hours from a day before the first heart rate to the last one: stay, hr, end."""
    beats = chart.filter(pl.col("itemid") == HEART_RATE)
    spans = beats.group_by("stay").agg(first=pl.col("t").min(), last=pl.col("t").max())
    base = -(-pl.col("first") // HOUR) * HOUR
    length = pl.col("last") // HOUR - pl.col("first") // HOUR
    spans = spans.with_columns(base=base, hr=pl.int_ranges(-_BEFORE, length + 1, dtype=pl.Int64))
    hours = spans.explode("hr").sort(_KEY)
    return hours.select("stay", "hr", "base", end=pl.col("base") + pl.col("hr") * HOUR)


def _worst(hours: pl.DataFrame, measured: pl.DataFrame, **worst: pl.Expr) -> pl.DataFrame:
    """The worst value of each hour: stay, hr, and the name given."""
    bases = hours.select("stay", "base").unique()
    hour = -(-(pl.col("t") - pl.col("base")) // HOUR)
    return measured.join(bases, on="stay").group_by("stay", hr=hour).agg(**worst)


def mean_pressures(chart: pl.DataFrame) -> pl.DataFrame:
    """Mean of the mean pressures charted at one time: stay, t, value."""
    number = pl.col("number")
    known = pl.col("itemid").is_in(MEAN_PRESSURES) & (number > 0) & (number < 300)
    return chart.filter(known).group_by("stay", "t").agg(value=number.mean())


def coma_scores(chart: pl.DataFrame) -> pl.DataFrame:
    """Glasgow coma scale: stay, t, value.

    A part that is missing is that of the time before, if less than six hours ago, or healthy; a
    patient with a tube counts as awake.
    """
    parts = (MOTOR, VERBAL, EYE)
    tube = (pl.col("itemid") == VERBAL) & (pl.col("text") == "no response-ett")
    number = pl.when(tube.fill_null(False)).then(0.0).otherwise(pl.col("number"))
    charted = chart.filter(pl.col("itemid").is_in(parts)).with_columns(number=number)
    of = {
        name: pl.col("number").filter(pl.col("itemid") == item).max()
        for name, item in zip(("motor", "verbal", "eye"), parts, strict=True)
    }
    scores = charted.group_by("stay", "t").agg(**of).sort("stay", "t")
    recent = pl.col("t") - pl.col("t").shift(1).over("stay") < 6 * HOUR
    before = {
        f"{name}_before": pl.when(recent).then(pl.col(name).shift(1).over("stay")) for name in of
    }
    scores = scores.with_columns(**before)
    healthy = {"motor": 6, "verbal": 5, "eye": 4}
    had_tube = (pl.col("verbal_before") == 0).fill_null(False)
    has_tube = (pl.col("verbal") == 0).fill_null(False)
    carried = [
        pl.coalesce(name, pl.when(~had_tube).then(pl.col(f"{name}_before")), pl.lit(full))
        for name, full in healthy.items()
    ]
    awake = has_tube | (pl.col("verbal").is_null() & had_tube)
    return scores.select(
        "stay", "t", value=pl.when(awake).then(15).otherwise(pl.sum_horizontal(carried))
    )


def _own(labs: pl.DataFrame, item: int, *, most: float = float("inf")) -> pl.DataFrame:
    """Results of the stay's own admission, one a specimen: stay, t, value."""
    number = pl.col("number")
    known = (pl.col("itemid") == item) & pl.col("own") & (number > 0) & (number <= most)
    grouped = labs.filter(known).group_by("stay", "specimen")
    return grouped.agg(t=pl.col("t").max(), value=number.max())


def _ratios(hours: pl.DataFrame, chart: pl.DataFrame, labs: pl.DataFrame) -> pl.DataFrame:
    """The lowest ratio of oxygen pressure to inspired oxygen, ventilated and not."""
    ratios = oxygen_ratios(chart, labs)
    tubes = invasive_ventilation(chart)
    inside = ratios.join(tubes, on="stay").filter(pl.col("t").is_between("start", "end"))
    marked = ratios.join(inside, on=["stay", "t"], how="semi")
    free = ratios.join(inside, on=["stay", "t"], how="anti")
    with_tube = _worst(hours, marked, ratio_ventilated=pl.col("value").min())
    without = _worst(hours, free, ratio_free=pl.col("value").min())
    return with_tube.join(without, on=_KEY, how="full", coalesce=True)


def oxygen_ratios(chart: pl.DataFrame, labs: pl.DataFrame) -> pl.DataFrame:
    """Ratio of each arterial gas: stay, t, value.

    The inspired oxygen is the one given with the gas, or the last charted up to four hours before.
    """
    number, item = pl.col("number"), pl.col("itemid")
    share = (number > 0.2) & (number <= 1)
    of_gas = pl.when(share).then(number * 100).when((number > 20) & (number <= 100)).then(number)
    gases = labs.group_by("stay", "specimen").agg(
        t=pl.col("t").max(),
        arterial=pl.col("arterial").any(),
        pressure=number.filter(item == OXYGEN_PRESSURE).max(),
        given=of_gas.filter(item == GAS_FIO2).max(),
    )
    gases = gases.filter("arterial").drop_nulls("pressure").sort("stay", "t")
    of_chart = pl.when(share).then(number * 100).when(number.is_between(20, 100)).then(number)
    charted = chart.filter(item == FIO2).with_columns(charted=of_chart).drop_nulls("charted")
    charted = charted.group_by("stay", "t").agg(pl.col("charted").max()).sort("stay", "t")
    joined = gases.join_asof(
        charted, on="t", by="stay", strategy="backward", tolerance=4 * HOUR, check_sortedness=False
    )
    ratio = 100 * pl.col("pressure") / pl.coalesce("given", "charted")
    return joined.select("stay", "t", value=ratio).drop_nulls("value")


def daily_urine(urine: pl.DataFrame, chart: pl.DataFrame) -> pl.DataFrame:
    """Urine of the last day in mL per 24 h, where it was collected for about a day: stay, t, value.

    An amount was collected since the one before it, the first since the first heart rate.
    """
    beats = chart.filter(pl.col("itemid") == HEART_RATE)
    begin = beats.group_by("stay").agg(begin=pl.col("t").min())
    rows_ = urine.join(begin, on="stay").sort("stay", "t")
    since = pl.col("t").shift(1).over("stay").fill_null(pl.col("begin"))
    collected = rows_.with_columns(minutes=pl.col("t") // 60 - since // 60)
    pairs = collected.select("stay", "t").join(
        collected.select("stay", "volume", "minutes", past="t"), on="stay"
    )
    age = pl.col("t") - pl.col("past")
    pairs = pairs.filter((age >= 0) & (age <= 23 * HOUR)).sort("stay", "t", "past")
    volume = pl.when(pl.col("volume").count() > 0).then(pl.col("volume").sum())
    day = pairs.group_by("stay", "t").agg(volume.alias("volume"), pl.col("minutes").sum())
    length = (pl.col("minutes") / 60).round(6).round(2)
    whole = day.with_columns(length=length).filter(pl.col("length").is_between(22, 30))
    return whole.select("stay", "t", value=pl.col("volume") / pl.col("length") * 24)


def _rates(hours: pl.DataFrame, given: pl.DataFrame) -> pl.DataFrame:
    """The highest rate of each drug that runs when an hour ends."""
    ends = hours.select("stay", "hr", end_of_hour="end")
    running = ends.join(given, on="stay").filter(
        (pl.col("end_of_hour") > pl.col("start")) & (pl.col("end_of_hour") <= pl.col("end"))
    )
    drugs = {"epinephrine": EPINEPHRINE, "norepinephrine": NOREPINEPHRINE,
             "dopamine": DOPAMINE, "dobutamine": DOBUTAMINE}  # fmt: skip
    rate, item = pl.col("rate"), pl.col("itemid")
    highest = {name: rate.filter(item == number).max() for name, number in drugs.items()}
    return running.group_by(_KEY).agg(**highest)


def _scores() -> dict[str, pl.Expr]:
    """The parts of the score of an hour; null where nothing was measured."""
    names = ("epinephrine", "norepinephrine", "dopamine", "dobutamine")
    epinephrine, norepinephrine, dopamine, dobutamine = (pl.col(name) for name in names)
    tube, free, urine = (pl.col(name) for name in ("ratio_ventilated", "ratio_free", "urine"))
    creatinine, gcs, pressure = (pl.col(name) for name in ("creatinine", "gcs", "pressure"))
    platelets, bilirubin = pl.col("platelets"), pl.col("bilirubin")
    return {
        "respiration": _first(
            ((4, tube < 100), (3, tube < 200), (2, free < 300), (2, tube < 300), (1, free < 400),
             (1, tube < 400)), (tube, free)),
        "coagulation": _first(
            ((4, platelets < 20), (3, platelets < 50), (2, platelets < 100), (1, platelets < 150)),
            (platelets,)),
        "liver": _first(
            ((4, bilirubin >= 12), (3, bilirubin >= 6), (2, bilirubin >= 2), (1, bilirubin >= 1.2)),
            (bilirubin,)),
        "cardiovascular": _first(
            ((4, dopamine > 15), (4, epinephrine > 0.1), (4, norepinephrine > 0.1),
             (3, dopamine > 5), (3, epinephrine > 0), (3, norepinephrine > 0),
             (2, dopamine > 0), (2, dobutamine > 0), (1, pressure < 70)),
            (pressure, epinephrine, norepinephrine, dopamine, dobutamine)),
        "cns": _first(
            ((4, gcs < 6), (3, gcs < 10), (2, gcs < 13), (1, gcs < 15)), (gcs,)),
        "renal": _first(
            ((4, creatinine >= 5), (4, urine < 200), (3, creatinine >= 3.5), (3, urine < 500),
             (2, creatinine >= 2), (1, creatinine >= 1.2)), (creatinine, urine)),
    }  # fmt: skip


def _first(rules: Iterable[tuple[int, pl.Expr]], known: tuple[pl.Expr, ...]) -> pl.Expr:
    """The score of the first rule that holds, 0 if none does, null if nothing is known."""
    unknown = pl.all_horizontal(column.is_null() for column in known)
    scores = (pl.when(holds.fill_null(False)).then(points) for points, holds in rules)
    return pl.when(~unknown).then(pl.coalesce(*scores, 0)).cast(pl.Int64)


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
        device=text.filter(item == DEVICE).max(),
        mode=text.filter(item == MODE).max(),
        hamilton=text.filter(item == HAMILTON_MODE).max(),
        flow=(item.is_in(FLOWS) & text.is_not_null()).any(),
    )
    device = pl.when("flow").then(pl.col("device"))
    columns = {"device": device, "mode": pl.col("mode"), "hamilton": pl.col("hamilton")}
    kinds = [
        (name.split(" ", 1)[1], columns[name.split(" ", 1)[0]].is_in(texts))
        for name, texts in _SUPPORT.items()
    ]
    kind = pl.coalesce(pl.when(holds.fill_null(False)).then(pl.lit(name)) for name, holds in kinds)
    return (
        told.with_columns(kind=kind)
        .drop_nulls("kind")
        .select("stay", "t", "kind")
        .sort("stay", "t")
    )
