"""Episodes of ventilation through a tube as mimic-code defines them."""

import polars as pl
import pytest

from etips.cohorts.mimic4 import hourly_rows as rows
from etips.cohorts.mimic4.ventilation_episodes import invasive_ventilation, kinds_of_support

HOUR = 3600
FLOW = rows.FLOWS[0]
SCHEMA = {"stay": pl.Int64, "itemid": pl.Int32, "t": pl.Int64, "text": pl.String}


def chart(*lines):
    full = [(1, item, round(hour * HOUR), text) for item, hour, text in lines]
    return pl.DataFrame(full, schema=SCHEMA, orient="row")


def modes(*hours, text="simv"):
    return [(rows.MODE, hour, text) for hour in hours]


def episodes(*lines):
    found = invasive_ventilation(chart(*lines))
    return [(start / HOUR, end / HOUR) for start, end in found.select("start", "end").rows()]


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        ([(rows.DEVICE, 1, "endotracheal tube"), (FLOW, 1, "4")], "invasive"),
        ([(rows.DEVICE, 1, "endotracheal tube")], None),  # no flow beside it
        ([(rows.DEVICE, 1, "trach mask"), (FLOW, 1, "4"), (rows.MODE, 1, "simv")], "tracheostomy"),
        ([(rows.HAMILTON_MODE, 1, "asv")], "invasive"),
        ([(rows.HAMILTON_MODE, 1, "spont")], None),
        ([(rows.HAMILTON_MODE, 1, "niv")], "mask"),
        ([(rows.DEVICE, 1, "nasal cannula"), (rows.DEVICE, 1, "none"), (FLOW, 1, "4")], "none"),
        ([(rows.MODE, 1, "standby")], None),
    ],
)
def test_kinds_of_support(lines, kind):
    assert kinds_of_support(chart(*lines))["kind"].to_list() == ([] if kind is None else [kind])


def test_an_episode_ends_when_the_next_kind_begins_and_one_time_is_none():
    assert episodes(*modes(1, 3), (rows.HAMILTON_MODE, 5, "niv")) == [(1, 5)]
    assert episodes(*modes(1)) == []
    assert episodes(*modes(1, 3)) == [(1, 3)]


def test_fourteen_hours_on_the_clock_make_a_new_episode():
    assert episodes(*modes(1, 3, 16, 18)) == [(1, 18)]
    assert episodes(*modes(1, 3, 17, 18)) == [(1, 3), (17, 18)]
    assert episodes(*modes(1, 3.9, 17, 18)) == [(1, 3.9), (17, 18)]
