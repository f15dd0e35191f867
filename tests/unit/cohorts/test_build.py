"""The whole pipeline on a simulated hospital: determinism, routes, blocks, switches."""

import contextlib
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from cohort_building import built, same

from etips.cohorts.build import build_cohort
from etips.cohorts.databases import LAYOUTS, compare, extract, open_source
from etips.cohorts.dataset.agreement import Evidence, Outcome
from etips.cohorts.dataset.sepsis_cohort import to_trajectories
from etips.cohorts.engines.tablefiles import find
from etips.cohorts.mimic.mimic3 import CLEAN, PAPER, SWITCHES, Mimic3Extraction
from etips.cohorts.sepsis3 import rules
from etips.cohorts.sepsis3.rules import steps_of_hours
from etips.cohorts.sepsis3.variables import TABLE_COLUMNS


def tables(folder):
    return {
        name: pl.read_csv(file.path, infer_schema=False)
        for name, file in find(folder, LAYOUTS).items()
    }


@pytest.fixture(scope="module")
def shuffled(hospital, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shuffled")
    for seed, (name, rows) in enumerate(tables(hospital).items()):
        rows.sample(fraction=1.0, shuffle=True, seed=seed).write_csv(folder / f"{name}.csv")
    return folder


@pytest.mark.parametrize("profile", [PAPER, CLEAN], ids=lambda profile: profile.name)
def test_shuffled_rows_and_plain_csv_give_the_identical_cohort(hospital, shuffled, profile):
    same(built(hospital, profile.name), built(shuffled, profile.name))


@pytest.mark.parametrize("profile", [PAPER, CLEAN], ids=lambda profile: profile.name)
def test_the_size_of_a_block_of_stays_changes_nothing(hospital, profile):
    small = built(hospital, profile.changed(stays_per_block=7), reading=Mimic3Extraction)
    same(built(hospital, profile.name), small)


def test_the_table_is_complete_and_in_order(paper_cohort):
    table = paper_cohort.table
    assert tuple(table.columns) == TABLE_COLUMNS
    assert len(table.columns) == 59
    assert table.select("icustayid", "bloc").is_duplicated().sum() == 0
    assert table.sort("icustayid", "bloc").equals(table)
    values = table.drop("elixhauser").to_numpy()
    assert np.isfinite(values).all()


@pytest.mark.parametrize("profile", ["paper", "clean"])
def test_shorter_steps_cut_the_same_stays_finer(hospital, paper_cohort, profile):
    four = paper_cohort if profile == "paper" else built(hospital, profile)
    with contextlib.closing(open_source(hospital)) as source:
        two = build_cohort(extract(source, profile, steps_of_hours(2)))
    assert 1.5 * four.table.height < two.table.height <= 2 * four.table.height + 40
    apart = two.table.select(
        (pl.col("charttime") - 7200 * (pl.col("bloc") - 1)).n_unique().over("icustayid")
    )
    assert apart.to_series().max() == 1  # two hours from one block to the next
    assert two.table["bloc"].max() <= 2 * (20 if profile == "paper" else 18)
    assert {"input_2hourly", "output_2hourly"} <= set(two.table.columns)
    assert not {"input_4hourly", "output_4hourly"} & set(two.table.columns)
    shared = set(four.table["icustayid"]) & set(two.table["icustayid"])
    assert len(shared) > 0.8 * len(set(four.table["icustayid"]))
    stays = to_trajectories(two)
    assert "input_2hourly" in stays.schema.logarithms
    assert [own.column for own in stays.schema.dosed_features] == ["input_2hourly", "max_dose_vaso"]
    outcomes = {check.outcome for check in compare(Evidence.of(two))}
    assert outcomes == {Outcome.PASS, Outcome.NOT_PUBLISHED}


def test_decisions_belong_to_the_rows_of_the_table(paper_cohort):
    table, decisions = paper_cohort.table, paper_cohort.decisions
    assert decisions.select("icustayid", "bloc").equals(table.select("icustayid", "bloc"))
    chosen = decisions.filter("sample_A")
    assert chosen["loss"].is_in([0.0, 1.0]).all()
    assert chosen["rows_before"].min() >= 1
    assert decisions["action"].is_between(0, 24).all()
    zero = (table["input_4hourly"] == 0) & (table["max_dose_vaso"] == 0)
    assert (zero == (decisions["action"] == 0)).all()


def test_the_funnel_adds_up(paper_cohort):
    funnel, table = paper_cohort.funnel, paper_cohort.table
    left = [stage.n_stays for stage in funnel.stages]
    assert left[0] == 60
    assert all(later <= earlier for earlier, later in pairwise(left[6:]))
    assert left[-1] == table["icustayid"].n_unique()
    assert funnel.n_rows == table.height == sum(funnel.action_counts)
    n_single = funnel.n_single_row_stays
    assert funnel.n_samples["C"] == funnel.n_rows - 2 * left[-1] + n_single
    assert funnel.n_samples["C"] - funnel.n_samples["A"] == (
        funnel.n_gaps - funnel.n_gaps_after_first_row
    )


def test_an_unknown_unit_is_counted_in_the_audit(paper_cohort):
    found = {item.item: item for item in paper_cohort.units if item.n_unexpected}
    assert set(found) == {221289}
    assert found[221289].unexpected == {"mg/hour": found[221289].n_rows}


def test_training_rows_do_not_depend_on_test_rows_in_clean(hospital, tmp_path):
    """D3: imputation, cap and dose edges are fitted on training stays only."""
    before = built(hospital, "clean")
    test_stays = before.decisions.filter(~pl.col("training"))["icustayid"].unique()
    assert test_stays.len() > 0
    for name, rows in tables(hospital).items():
        if name == "outputevents":
            of_test = pl.col("icustay_id").cast(pl.Int64).is_in(test_stays.implode())
            changed = pl.col("value").cast(pl.Float64) + 40
            rows = rows.with_columns(
                value=pl.when(of_test).then(changed.cast(pl.String)).otherwise(pl.col("value"))
            )
        rows.write_csv(tmp_path / f"{name}.csv")
    after = built(tmp_path, "clean")
    assert before.fluid.edges == after.fluid.edges
    keep = pl.col("icustayid").is_in(test_stays.implode()).not_()
    assert before.table.filter(keep).equals(after.table.filter(keep))
    assert not before.table.equals(after.table)


@pytest.mark.parametrize("switch", rules.SWITCHES + SWITCHES)
def test_every_switch_works_alone(hospital, switch):
    cohort = built(hospital, PAPER.changed(**{switch: True}), reading=Mimic3Extraction)
    assert cohort.table.height > 0
