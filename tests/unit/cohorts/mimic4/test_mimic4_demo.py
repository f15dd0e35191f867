"""The open demo of MIMIC-IV: what it comes to, and what two public programs give there.

Nothing of the demo is in the repository: these tests skip where it is not at hand. The reference
holds the stays with an even id; docs/cohort/mimic4.md says what can be compared.
"""

import numpy as np
import polars as pl
import pytest
from cohort_building import built

from etips.cohorts.databases import compare
from etips.cohorts.dataset.agreement import Evidence, Outcome
from etips.cohorts.mimic4.extraction import Mimic4Extraction
from etips.cohorts.mimic4.switches import PAPER
from etips.cohorts.sepsis3.variables import DELAY

PORT = "ai-clinician-port-labfix"
# Our column and the port's: every cell must be the same to the six digits that it writes.
SAME = {
    "max_dose_vaso": "max_dose_vaso", "median_dose_vaso": "median_dose_vaso",
    "input_4hourly": "input_step", "input_total": "input_total", "output_4hourly": "output_step",
    DELAY: DELAY, "died_in_hosp": "died_in_hosp", "mortality_90d": "morta_90",
    "died_within_48h_of_out_time": "died_within_48h_of_out_time", "re_admission": "re_admission",
}  # fmt: skip


@pytest.fixture(scope="module")
def port_like(demo4):
    """The paper profile with laboratory results linked as the port links them."""
    return built(demo4, PAPER.changed(laboratory_by_subject=False), reading=Mimic4Extraction)


def read(reference, name):
    return pl.read_csv(reference / f"{name}.csv.gz", infer_schema_length=None)


def numbers(column):
    if column.dtype == pl.String:
        column = column == "True"
    return column.cast(pl.Float64).fill_null(0).fill_nan(0).to_numpy()


@pytest.mark.parametrize(("number", "at_least"), [(1, 320), (2, 395)])
def test_doses_volumes_deaths_and_delays_are_those_of_the_port(
    port_like, reference4, number, at_least
):
    theirs = read(reference4, f"{PORT}/pass{number}_steps")
    theirs = theirs.rename({name: f"their_{name}" for name in SAME.values()})
    theirs = theirs.rename({"timestep": "charttime"})
    keys = ["icustayid", "bloc", "charttime"]
    shared = port_like.before_imputation[number - 1].join(theirs, on=keys, suffix="_other")
    assert shared.height >= at_least
    for ours, name in SAME.items():
        mine, their = numbers(shared[ours]), numbers(shared[f"their_{name}"])
        np.testing.assert_allclose(mine, their, rtol=6e-6, err_msg=ours)


def test_onsets_are_those_of_the_port_but_in_admissions_with_several_stays(
    port_like, reference4, demo4
):
    """It gives antibiotics and samples to every stay of an admission."""
    theirs = read(reference4, f"{PORT}/onset").rename({"icustayid": "stay_id"})
    mine = port_like.onsets.filter(pl.col("stay_id") % 2 == 0)
    both = mine.join(theirs, on="stay_id", how="full", coalesce=True)
    differ = both.filter(pl.col("onset").ne_missing(pl.col("onset_time")))
    stays = pl.read_csv(demo4 / "icu" / "icustays.csv.gz")
    several = stays.filter(pl.len().over("hadm_id") > 1)["stay_id"]
    assert both.height - differ.height >= 32
    assert differ["stay_id"].is_in(several.implode()).all()


FIGURES = {
    "paper": {
        "with an antibiotic (any age)": 78, "with a sample (any age)": 132,
        "with both (any age)": 78, "with an onset (any age)": 74,
        "with data in the pass 1 window": 67, "after exclusion: maximum SOFA below 2": 67,
        "with data in the pass 2 window": 65, "rows": 875, "samples": 725, "loss": 0.447,
        "history": 7.37, "deaths": 10, "no vasopressor": 621, "no fluid": 154,
        "fluid": (66.3, 198.4, 521.3), "vasopressor": (0.101, 0.209, 0.408),
    },
    "clean": {
        "with an antibiotic (any age)": 96, "with a sample (any age)": 125,
        "with both (any age)": 88, "with an onset (any age)": 87,
        "with data in the pass 1 window": 86, "after exclusion: maximum SOFA below 2": 82,
        "with data in the pass 2 window": 82, "rows": 813, "samples": 651, "loss": 0.424,
        "history": 5.30, "deaths": 11, "no vasopressor": 564, "no fluid": 87,
        "fluid": (61.6, 261.9, 672.5), "vasopressor": (0.099, 0.225, 0.479),
    },
}  # fmt: skip


@pytest.mark.parametrize("profile", ["paper", "clean"])
def test_the_figures_of_the_demo(demo4, profile):
    cohort = built(demo4, profile)
    funnel, table = cohort.funnel, cohort.table
    found = {stage.name: stage.n_stays for stage in funnel.stages}
    assert (found["ICU stays"], found["adult"]) == (140, 140)
    found |= {
        "rows": funnel.n_rows, "samples": funnel.n_samples["A"],
        "loss": round(funnel.mean_loss, 3), "history": round(funnel.history[1], 2),
        "deaths": table.unique("icustayid")["died_in_hosp"].sum(),
        "no vasopressor": cohort.vasopressor.counts[0], "no fluid": cohort.fluid.counts[0],
        "fluid": tuple(round(edge, 1) for edge in cohort.fluid.edges),
        "vasopressor": tuple(round(edge, 3) for edge in cohort.vasopressor.edges),
    }  # fmt: skip
    assert {name: found[name] for name in FIGURES[profile]} == FIGURES[profile]
    outcomes = {check.quantity: check.outcome for check in compare(Evidence.of(cohort))}
    assert outcomes["features"] is outcomes["actions"] is Outcome.PASS
    assert set(outcomes.values()) <= {Outcome.PASS, Outcome.NOT_PUBLISHED}
