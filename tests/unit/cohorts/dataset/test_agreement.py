"""Section 1: the published figures, and when they can be judged."""

from dataclasses import replace
from importlib.resources import files

import polars as pl
import pytest

from etips.cohorts.dataset.agreement import Evidence, Outcome, Published, validate
from etips.cohorts.dataset.dose_actions import DoseClasses
from etips.cohorts.dataset.funnel import Funnel, Stage
from etips.cohorts.dataset.sepsis_cohort import to_trajectories
from etips.cohorts.sepsis3.variables import TABLE_COLUMNS
from etips.data.storage import save_trajectories
from etips.errors import FileError
from etips.worlds.clinic import Clinic

PUBLISHED = Published.read((files("etips.cohorts.mimic") / "mimic3_published.csv").read_text())


def evidence(n_source=61_532, **figures):
    """A cohort of one row whose own figures are given."""
    row = dict.fromkeys(TABLE_COLUMNS, 1.0)
    settings = {
        "n_samples": {"A": 224_333, "B": 1, "C": 1},
        "history": (1, 7.2, 18),
        "mean_loss": 0.498,
        "action_counts": (9, *[1] * 24),
        **figures,
    }
    funnel = Funnel(
        profile="paper",
        antibiotic_order="stay_first",
        stages=(
            Stage("ICU stays", n_source),
            Stage("after exclusion: maximum SOFA below 2", 21_333),
        ),
        n_rows=1,
        n_single_row_stays=1,
        n_gaps=0,
        n_gaps_after_first_row=0,
        missing_share={},
        **settings,
    )
    fluid = DoseClasses((48.884, 150, 500), (0, 30, 80, 284, 874), (1,) * 5)
    vasopressor = DoseClasses((0.08, 0.2, 0.45), (0, 0.04, 0.13, 0.27, 0.78), (1,) * 5)
    return Evidence("mimic3", pl.DataFrame([row]), funnel, fluid, vasopressor)


def outcomes(found):
    return {check.quantity: check.outcome for check in validate(found, PUBLISHED)}


def test_figures_inside_their_limits_pass_and_others_fail():
    found = outcomes(evidence(mean_loss=0.51))
    assert found["samples"] is Outcome.PASS
    assert found["IV fluid, quartile 1"] is Outcome.PASS
    assert found["stays in the final table"] is Outcome.FAIL
    assert found["mean loss"] is Outcome.FAIL


def test_a_small_source_is_not_judged_except_by_what_size_cannot_change():
    found = outcomes(evidence(n_source=136))
    assert found["features"] is Outcome.PASS
    assert found["actions"] is Outcome.PASS
    rest = {name: o for name, o in found.items() if name not in ("features", "actions")}
    assert rest.pop("accuracy of the predictive model") is Outcome.NOT_MEASURED
    assert set(rest.values()) == {Outcome.TOO_SMALL}


def test_a_folder_gives_the_same_as_the_cohort(tmp_path, request):
    paper_cohort = request.getfixturevalue("paper_cohort")
    folder = tmp_path / "cohort"
    save_trajectories(to_trajectories(paper_cohort), folder, beside=paper_cohort.files())
    assert Evidence.read(folder).funnel == Evidence.of(paper_cohort).funnel
    one, other = (
        validate(found, PUBLISHED) for found in (Evidence.of(paper_cohort), Evidence.read(folder))
    )
    assert one == other


def test_trajectories_that_are_no_cohort_are_refused_in_one_line(tmp_path):
    Clinic().log(20, seed=0).save(tmp_path / "log")
    with pytest.raises(FileError, match="must be a whole cohort folder"):
        Evidence.read(tmp_path / "log")


def test_a_figure_that_would_tell_of_few_people_is_marked():
    few = {
        check.quantity for check in validate(evidence(n_source=136), PUBLISHED) if check.tells_few
    }
    assert few == {
        *("stays in the final table", "hospital deaths, share of stays", "samples per stay"),
        *("rows of the final table", "rows without fluid", "rows without vasopressor"),
    }  # of a table of a handful of rows


def test_a_count_is_marked_that_tells_of_few_beside_one_that_is_shown_elsewhere():
    found = evidence(n_source=136)
    stages = (Stage("ICU stays", 136), Stage("pass 1, SOFA below 2", 135))
    beside = replace(found, funnel=replace(found.funnel, stages=stages))
    few = {check.quantity: check.tells_few for check in validate(beside, PUBLISHED)}
    assert beside.funnel.shown.stages == (None, 135)
    assert not few["stays after the first pass"]
    turned = replace(found.funnel, stages=(*stages, Stage("kept", 60)))
    few = {
        check.quantity: check.tells_few
        for check in validate(replace(found, funnel=turned), PUBLISHED)
    }
    assert turned.shown.stages == (136, None, 60)
    assert few["stays after the first pass"]


def test_without_published_figures_only_what_is_always_so_is_judged():
    checks = {check.quantity: check.outcome for check in validate(evidence(n_source=136), None)}
    assert checks.pop("features") is checks.pop("actions") is Outcome.PASS
    assert len(checks) > 10
    assert set(checks.values()) == {Outcome.NOT_PUBLISHED}
