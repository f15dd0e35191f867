"""The cohort of a fixed simulated hospital, cell by cell: a rule that changes is seen at once.

Whoever changes a rule on purpose makes the record anew: `python tests/golden/make_cohort.py`.
"""

import json
import math
from itertools import pairwise

import polars as pl
import pytest
from make_cohort import KEPT, PROFILES, built, documents, frames, hospital

WITHIN = 1e-9
# The rule on deaths is void in the paper profile; the others need not all bite in both.
SEEN_IN = {
    "paper": {
        "after exclusion: output above 12,000 mL in a step",
        "after exclusion: bilirubin above 10,000",
        "after exclusion: input above 10,000 mL in a step",
        "after exclusion: possible withdrawal of care",
        "after exclusion: maximum SOFA below 2",
    },
    "clean": {
        "after exclusion: output above 12,000 mL in a step",
        "after exclusion: possible withdrawal of care",
        "after exclusion: death during data collection",
        "after exclusion: maximum SOFA below 2",
    },
}


@pytest.fixture(scope="module")
def cohorts():
    with hospital() as raw:
        return {profile: built(raw, profile) for profile in PROFILES}


def differing(found: pl.DataFrame, kept: pl.DataFrame) -> dict[str, int]:
    """How many cells of each column differ; whole numbers, ids and flags must be the same."""
    counts = {}
    for name in kept.columns:
        mine, theirs = found[name], kept[name]
        if theirs.dtype.is_float():
            near = (mine - theirs).abs() <= WITHIN * (1 + theirs.abs())
            equal = (near | (mine == theirs)).fill_null(mine.is_null() & theirs.is_null())
        else:
            equal = mine.eq_missing(theirs)
        counts[name] = equal.len() - equal.sum()
    return {name: n for name, n in counts.items() if n}


def same(found, kept) -> bool:
    """Whether two parts of a JSON document are the same, numbers to 1e-9."""
    if isinstance(kept, dict):
        return found.keys() == kept.keys() and all(same(found[k], kept[k]) for k in kept)
    if isinstance(kept, list):
        return len(found) == len(kept) and all(map(same, found, kept))
    if isinstance(kept, float):
        return found is not None and math.isclose(found, kept, rel_tol=WITHIN, abs_tol=WITHIN)
    return found == kept


@pytest.mark.parametrize("name", ["table", "onset"])
@pytest.mark.parametrize("profile", PROFILES)
def test_every_cell_is_the_one_kept(cohorts, profile, name):
    found = frames(cohorts[profile])[name]
    kept = pl.read_parquet(KEPT / f"{profile}_{name}.parquet")
    assert (found.height, found.schema) == (kept.height, kept.schema)
    assert differing(found, kept) == {}


@pytest.mark.parametrize("name", ["funnel.json", "doses.json", "audit.json", "config.json"])
@pytest.mark.parametrize("profile", PROFILES)
def test_funnel_doses_audit_and_settings_are_those_kept(cohorts, profile, name):
    kept = json.loads((KEPT / f"{profile}.json").read_text())[name]
    assert same(documents(cohorts[profile])[name], kept)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_hospital_is_rich_enough_to_tell(cohorts, profile):
    """Every feature varies, every class of doses and every exclusion has somebody in it."""
    cohort = cohorts[profile]
    varied = cohort.table.drop("elixhauser")
    assert [name for name in varied.columns if varied[name].n_unique() < 2] == []
    assert all(n > 10 for n in (*cohort.fluid.counts, *cohort.vasopressor.counts))
    assert cohort.funnel.n_gaps > 0
    left = [stage.n_stays for stage in cohort.funnel.stages]
    idle = [
        later.name
        for before, later in pairwise(cohort.funnel.stages)
        if before.n_stays == later.n_stays and later.name.startswith("after exclusion")
    ]
    assert set(idle) & SEEN_IN[profile] == set()
    assert left[0] > left[1] > left[6] > left[7]  # minors, no infection, no data
    items = {item.item for item in cohort.units}
    assert min(items) < 1000 < 220_000 < max(items)  # both charting systems


def test_a_cell_that_moves_is_counted():
    kept = pl.DataFrame({"id": [1, 2], "x": [1.0, None], "y": [0.0, 1.0]})
    moved = pl.DataFrame({"id": [1, 3], "x": [1.0 + 1e-6, None], "y": [0.0, None]})
    assert differing(kept, kept) == {}
    assert differing(moved, kept) == {"id": 1, "x": 1, "y": 1}
