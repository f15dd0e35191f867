"""The open demo of MIMIC-IV: what it comes to, and what two public programs give there.

Nothing of the demo is in the repository: these tests skip where it is not at hand. The reference
holds the stays with an even id; docs/cohort/mimic4.md says what can be compared.
"""

import contextlib

import numpy as np
import polars as pl
import pytest
from cohort_building import built

from etips.cohorts.databases import compare, open_source
from etips.cohorts.dataset.agreement import Evidence, Outcome
from etips.cohorts.mimic.hourly_sofa import (
    PARTS,
    hourly_sofa,
    invasive_ventilation,
    read_hourly,
)
from etips.cohorts.mimic.mimic4 import CLEAN, PAPER, Mimic4Extraction, Onset
from etips.cohorts.sepsis3.doses import running_doses
from etips.cohorts.sepsis3.rules import Potency
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


@pytest.fixture(scope="module")
def by_mimic_code(demo4):
    """The extraction by the definition of mimic-code, its rows kept, and what it defines."""
    profile = CLEAN.changed(onset=Onset.MIMIC_CODE, potency=POTENCY)
    with contextlib.closing(open_source(demo4)) as source:
        extraction = Mimic4Extraction(source, profile)
        extraction.begin()
        extraction.antibiotics()
        extraction.keep(extraction.stays()["stay"].to_list())
        yield extraction


# Factors of mimic-code: norepinephrine equivalents of phenylephrine, and of vasopressin per U/min.
POTENCY = Potency(phenylephrine=0.1, vasopressin_per_unit_per_minute=2.5)


def seconds(name):
    return pl.col(name).str.to_datetime("%Y-%m-%d %H:%M:%S").dt.epoch("s")


def even(frame):
    return frame.filter(pl.col("stay") % 2 == 0)


def test_suspected_infection_and_sepsis_by_mimic_code_are_those_of_mimic_code(
    by_mimic_code, reference4
):
    own = by_mimic_code.own_definition()
    assert (own.onsets.height, len(own.septic)) == (82, 62)
    orders = read(reference4, "mimic-code/suspicion_of_infection")
    told = orders.filter(pl.col("suspected_infection") == 1)["stay_id"].unique().sort()
    assert even(own.onsets)["stay"].equals(told, check_names=False)
    sepsis = read(reference4, "mimic-code/sepsis3")
    sepsis = sepsis.select(stay="stay_id", onset=seconds("suspected_infection_time")).sort("stay")
    septic = own.onsets.filter(pl.col("stay").is_in(sorted(own.septic)))
    assert even(septic).equals(sepsis)


def test_every_hour_of_sofa_and_every_ventilation_is_that_of_mimic_code(by_mimic_code, reference4):
    frames = read_hourly(by_mimic_code.kept, 0, 10**9)
    theirs = read(reference4, "mimic-code/sofa_hourly").rename({"stay_id": "stay"})
    theirs = theirs.with_columns(end=seconds("endtime")).sort("stay", "hr")
    mine = even(hourly_sofa(frames)).sort("stay", "hr")
    assert mine.select("stay", "hr", "end").equals(theirs.select("stay", "hr", "end"))
    for part in PARTS:
        assert mine[part].equals(theirs[f"{part}_24hours"], check_names=False), part
    told = read(reference4, "mimic-code/ventilation")
    told = told.filter(pl.col("ventilation_status") == "InvasiveVent")
    told = told.select(stay="stay_id", start=seconds("starttime"), end=seconds("endtime"))
    episodes = even(invasive_ventilation(frames["hourly_chart"]))
    assert episodes.equals(told.sort("stay", "start"))


def test_figures_over_all_stays_are_those_of_the_public_programs(by_mimic_code):
    """Of every stay, those beyond the half whose rows we hold: counts, sums and means."""
    frames = read_hourly(by_mimic_code.kept, 0, 10**9)
    scores = hourly_sofa(frames)
    assert (scores.height, scores["sofa"].max(), round(scores["sofa"].mean(), 2)) == (
        12_209,
        23,
        4.99,
    )
    means = [round(scores[part].mean(), 3) for part in PARTS]
    assert means == [0.739, 0.674, 0.430, 1.446, 0.607, 1.097]
    assert scores.filter(pl.col("sofa") >= 2)["stay"].n_unique() == 116
    episodes = invasive_ventilation(frames["hourly_chart"])
    assert (episodes.height, episodes["stay"].n_unique()) == (61, 58)
    urine = frames["hourly_urine"]
    assert (urine.height, urine["stay"].n_unique(), urine["volume"].sum()) == (7317, 137, 931_355)
    given = by_mimic_code.events(0, 10**9)
    assert (given.vasopressors.height, given.vasopressors["stay"].n_unique()) == (1691, 52)
    assert given.boluses.height + given.infusions.height == 5157


def test_norepinephrine_equivalents_are_those_of_mimic_code(by_mimic_code, reference4):
    """But for our three decimals for each drug, where it has four for their sum.

    Where two bags of one drug run at once it has an interval for each; the higher rate counts.
    """
    doses = running_doses(by_mimic_code.events(0, 10**9).vasopressors, by_mimic_code.rules)
    told = read(reference4, "mimic-code/norepinephrine_equivalent_dose")
    told = told.group_by(stay="stay_id", opens=seconds("starttime"), closes=seconds("endtime")).agg(
        theirs=pl.col("norepinephrine_equivalent_dose").max()
    )
    pairs = told.join(doses, on="stay").filter(
        (pl.col("start") <= pl.col("opens")) & (pl.col("closes") <= pl.col("end"))
    )
    by_drug = pairs.group_by("stay", "opens", "closes", "drug").agg(pl.col("dose").max())
    found = by_drug.group_by("stay", "opens", "closes").agg(pl.col("dose").sum(), n=pl.len())
    both = told.join(found, on=["stay", "opens", "closes"], how="left")
    assert both["dose"].null_count() == 0
    error = (both["dose"] - both["theirs"]).abs()
    assert (error <= 0.0005 * both["n"] + 0.0001).all()


def test_urine_of_four_hours_is_that_of_mimic_code(by_mimic_code, reference4):
    urine = by_mimic_code.events(0, 10**9).urine
    begins = by_mimic_code.stays().select("stay", "icu_in")
    step = (pl.col("t") - pl.col("icu_in")) // (4 * 3600)
    found = urine.join(begins, on="stay").group_by("stay", step=step).agg(pl.col("volume").sum())
    told = read(reference4, "mimic-code/urine_output_4h").rename({"stay_id": "stay"})
    both = told.join(found, on=["stay", "step"], how="left")
    np.testing.assert_allclose(numbers(both["volume"]), numbers(both["urine_ml"]), atol=1e-6)
    assert even(found).height == told.height


def test_a_cohort_by_the_definition_of_mimic_code(demo4):
    cohort = built(demo4, CLEAN.changed(onset=Onset.MIMIC_CODE), reading=Mimic4Extraction)
    stages = {stage.name: stage.n_stays for stage in cohort.funnel.stages}
    assert stages["with an onset (any age)"] == 82
    assert stages["adult with Sepsis-3 as defined"] == 62
    assert 50 < stages["with data in the pass 2 window"] <= 62
