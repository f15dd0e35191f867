"""Section 15: each rule with a stay that goes and one that stays."""

from dataclasses import replace

import polars as pl
import pytest

from etips.cohorts.sepsis3.exclusions import care_withdrawn, exclude, without_scattered_rows
from etips.cohorts.sepsis3.rules import CLEAN, PAPER
from etips.cohorts.sepsis3.variables import DELAY

ROW = {
    "output_4hourly": 100.0, "Total_bili": 1.0, "input_4hourly": 100.0, "mortality_90d": 0.0,
    "max_dose_vaso": 0.0, "SOFA": 5.0, "died_within_48h_of_out_time": 0.0, DELAY: 100.0,
}  # fmt: skip


def stay(*rows, stay=1, blocs=None):
    """Rows of a stay; each argument changes the columns of one row."""
    blocs = blocs or range(1, len(rows) + 1)
    return pl.DataFrame(
        [{"icustayid": stay, "bloc": b, **ROW, **r} for b, r in zip(blocs, rows, strict=True)]
    )


def kept(rows, config=PAPER):
    return exclude(rows, config)[0]["icustayid"].n_unique() == 1


@pytest.mark.parametrize(
    ("name", "allowed", "excess"),
    [
        ("output_4hourly", 12_000.0, 12_001.0),
        ("Total_bili", 10_000.0, 10_001.0),
        ("input_4hourly", 10_000.0, 10_001.0),
    ],
)
def test_one_absurd_step_drops_the_stay(name, allowed, excess):
    assert kept(stay({}, {name: allowed}))
    assert not kept(stay({}, {name: excess}))


@pytest.mark.parametrize(("sofa", "stays"), [(2.0, True), (1.0, False)])
def test_the_highest_sofa_must_reach_two(sofa, stays):
    assert kept(stay({"SOFA": 0.0}, {"SOFA": sofa})) is stays


def withdrawal(last=None, first=None, blocs=None, n=2):
    first = {"mortality_90d": 1.0, "max_dose_vaso": 0.4, "SOFA": 10.0, **(first or {})}
    last = {"mortality_90d": 1.0, "max_dose_vaso": 0.0, "SOFA": 5.0, **(last or {})}
    return stay(*[first] * (n - 1), last, blocs=blocs)


def withdrawn(rows, config=PAPER):
    return care_withdrawn(rows, config).len() == 1


def test_stopping_vasopressors_in_a_dying_patient_is_withdrawal():
    assert withdrawn(withdrawal())


@pytest.mark.parametrize(
    "other",
    [
        withdrawal({"mortality_90d": 0.0}, {"mortality_90d": 0.0}),
        withdrawal({"max_dose_vaso": 0.1}),
        withdrawal(first={"max_dose_vaso": 0.3}),
        withdrawal({"SOFA": 4.0}),
        withdrawal(n=20),
    ],
    ids=["survived", "still treated", "low dose before", "recovering", "full record"],
)
def test_anything_less_is_not_withdrawal(other):
    assert not withdrawn(other)


def test_a_gap_lets_a_stay_escape_in_the_scripts_but_not_in_clean():
    gapped = withdrawal(blocs=[1, 3])
    assert not withdrawn(gapped)
    assert withdrawn(gapped, CLEAN)


def test_death_during_collection_drops_a_stay_in_clean_only():
    dying = stay({"died_within_48h_of_out_time": 1.0, DELAY: 23.9}, {})
    assert kept(dying)
    assert not kept(dying, CLEAN)
    assert kept(stay({"died_within_48h_of_out_time": 1.0, DELAY: 24.0}), CLEAN)


def test_what_each_rule_drops_is_counted_once():
    rows = pl.concat(
        [
            stay({"output_4hourly": 13_000.0, "input_4hourly": 13_000.0}),
            stay({"input_4hourly": 13_000.0}, stay=2),
            stay({}, stay=3),
        ]
    )
    left, dropped = exclude(rows, PAPER)
    assert left["icustayid"].to_list() == [3]
    assert list(dropped.values()) == [1, 0, 1, 0, 0, 0]


DIED = {"died_within_48h_of_out_time": 1.0, DELAY: 23.0}


def three_stays(second):
    """Six rows, two a stay; `second` changes those of the second stay."""
    return pl.concat([stay({}, {}, stay=1), stay(second, second, stay=2), stay({}, {}, stay=3)])


def test_the_scripts_lose_the_row_whose_number_is_that_of_a_dying_stay():
    """The second stay died, so the second row goes: one of the first stay."""
    rows, dropped = exclude(three_stays(DIED), PAPER)
    assert rows.select("icustayid", "bloc").rows() == [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2)]
    assert sum(dropped.values()) == 0


@pytest.mark.parametrize("switch", ["no_scattered_deletion", "drop_deaths_in_collection"])
def test_no_row_of_another_stay_is_lost_with_either_correction(switch):
    rows, _ = exclude(three_stays(DIED), replace(PAPER, **{switch: True}))
    assert rows.filter(pl.col("icustayid") != 2).height == 4


def test_a_stay_that_loses_its_only_row_is_counted_with_the_dead():
    rows = pl.concat([stay(DIED, stay=1), stay({}, {}, stay=2)])
    assert without_scattered_rows(rows)["icustayid"].to_list() == [2, 2]
    assert exclude(rows, PAPER)[1]["death during data collection"] == 1
