"""Events of one or two stays, written down by hand."""

import polars as pl

from etips.cohorts.sepsis3.events import CONCEPT, Events

HOUR = 3600
T = 4_000_000_000
_TIMES = ("t", "start", "end")


def frame(rows, **kinds):
    """Rows of stay 1 whose times are hours after T."""
    made = pl.DataFrame(list(rows), schema=kinds, orient="row")
    times = [name for name in kinds if name in _TIMES]
    made = made.with_columns((pl.col(times) * HOUR + T).cast(pl.Int64))
    return made if "stay" in kinds else made.with_columns(stay=pl.lit(1, pl.Int64))


def events(*, measured=(), boluses=(), infusions=(), fluid=(), urine=(), urine_before=(), drugs=()):
    """Events of stay 1; hours after T.

    Args:
        measured: (concept, hour, value).
        boluses: (hour, volume).
        infusions: (start, end, rate).
        fluid: Volume before the stay, if any.
        urine: (hour, volume).
        urine_before: Volume before the stay, if any.
        drugs: (drug, start, end or None, rate), in mcg/kg/min.
    """
    number, text = pl.Float64, pl.String
    return Events(
        measurements=frame(
            [(*row, 0) for row in measured],
            concept=CONCEPT, t=number, value=number, priority=pl.Int32,
        ),
        ventilation=frame([], start=number, end=number),
        vasopressors=frame(
            [(*row, "mcg/kg/min") for row in drugs],
            drug=text, start=number, end=number, rate=number, unit=text,
        ),
        boluses=frame(boluses, t=number, volume=number),
        infusions=frame(infusions, start=number, end=number, rate=number),
        fluid_before=frame([(volume,) for volume in fluid], volume=number),
        urine=frame(urine, t=number, volume=number),
        urine_before=frame([(volume,) for volume in urine_before], volume=number),
    )  # fmt: skip


def stay(**changed):
    """Demographics of stay 1, in the ICU from T - 100 h to T + 100 h, with its onset at T."""
    row = {
        "stay": 1, "gender": 1.0, "age": 20_000.0, "elixhauser": None, "re_admission": 0.0,
        "died_in_hosp": 0.0, "died_within_48h_of_out_time": 0.0, "mortality_90d": 0.0,
        "discharge": T + 200 * HOUR, "icu_in": T - 100 * HOUR, "icu_out": T + 100 * HOUR,
        "onset": T, **changed,
    }  # fmt: skip
    return pl.DataFrame([row], schema_overrides={"elixhauser": pl.Float64})
