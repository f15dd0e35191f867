"""Records of results: what they refuse, what they are called, how they become JSON."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from told_benches import BENCH, ROWS, STANDING

from etips.results.bench_result import Bench
from etips.results.comparison_result import CLINICIANS, COLUMNS, Comparison, Figure, PairResult
from etips.results.exhibits import Actions, DoseGrid, WeightHistogram, require_even
from etips.results.parsing import from_json
from etips.results.records import (
    DataSummary,
    EstimateResult,
    MethodResult,
    NegativeControlResult,
    PathCandidate,
    to_json,
)
from etips.results.study_result import FoldResult, Series, StudyRecord, StudyResult, Table


@dataclass(frozen=True)
class Inner:
    share: float | None


@dataclass(frozen=True)
class Outer:
    inner: Inner
    rows: tuple[object, ...]
    named: dict


def test_fields_become_keys_and_what_json_lacks_becomes_null():
    rows = (np.float64(0.5), np.int64(3), np.bool_(True), float("nan"), float("inf"), "a", None)
    made = to_json(Outer(Inner(float("-inf")), rows, {1: (Inner(0.25),)}))
    assert made == {
        "inner": {"share": None},
        "rows": [0.5, 3, True, None, None, "a", None],
        "named": {"1": [{"share": 0.25}]},
    }
    assert [type(value) for value in made["rows"][:3]] == [float, int, bool]
    json.dumps(made, allow_nan=False)


def test_what_no_result_may_hold_is_an_error_and_not_its_text():
    with pytest.raises(TypeError, match="cannot hold ndarray"):
        to_json(Inner(np.zeros(3)))


def called(translation=None, **more):
    return PathCandidate(translation, None, None, None, None, False, True, **more).called


@pytest.mark.parametrize(
    ("candidate", "name"),
    [
        ({"clinicians": True}, "as the clinicians"),
        ({}, "trained"),
        ({"translation": 0.5}, "translation 0.5"),
        ({"form": "doubly robust"}, "doubly robust"),
        ({"form": "log-sum-exp", "strength": 0.1}, "log-sum-exp 0.1"),
        (
            {"form": "smoothed gains", "strength": 1.0, "translation": 0.49812},
            "smoothed gains 1, translation 0.498",
        ),
    ],
)
def test_a_candidate_is_called_by_what_it_was_trained_by(candidate, name):
    assert called(**candidate) == name


QUIET = NegativeControlResult("before", False, 0.01, -0.1, 0.12, 0.99, 2.0, False)


def test_the_sentence_says_whether_zero_is_possible():
    assert "could be" in QUIET.sentence
    loud = replace(QUIET, difference=-0.5, low=-0.8, high=-0.2, warning=True)
    assert "where no action can have caused one" in loud.sentence
    assert "0.25 standard deviations" in loud.sentence
    assert "no number" in replace(QUIET, difference=None).sentence


def test_a_feature_is_said_to_test_the_propensities_only():
    assert "not what is hidden" not in QUIET.sentence
    assert "not what is hidden" in replace(QUIET, seen=True).sentence


ESTIMATE = EstimateResult("snips", risk=0.5, std_error=0.1, low=0.3, high=None)


def test_no_number_stands_without_a_verdict():
    with pytest.raises(ValueError, match="no verdict"):
        MethodResult("p", (ESTIMATE,), None, None, (), None)
    MethodResult("p", (), None, None, (), 0.4)


ACTIONS = Actions(("a", "b"), None, (20, 30), (0.4, 0.6), (1.0, 0.0), (0.7, 0.3), None, (9.0, 9.0))


@pytest.mark.parametrize(
    "change",
    [
        {"names": ("a",)},
        {"n_logged": (20,)},
        {"supported_share": (1.0,)},
        {"grid": DoseGrid(2, 2, "fluid", "vasopressor")},
    ],
)
def test_actions_have_one_entry_each_in_every_column(change):
    with pytest.raises(ValueError, match="columns of equal length"):
        replace(ACTIONS, **change)
    replace(ACTIONS, grid=DoseGrid(1, 2, "fluid", "vasopressor"))


def test_a_grid_without_cells_is_refused():
    with pytest.raises(ValueError, match="rows and columns"):
        DoseGrid(0, 5, "fluid", "vasopressor")


def test_weights_have_a_share_for_every_bin():
    with pytest.raises(ValueError, match="equal length"):
        WeightHistogram(edges=(0.0, 1.0), decisions=(1.0,), weight=(1.0, 0.0))
    require_even((1, 2), ("a", "b"))


def test_a_table_has_as_many_cells_as_columns_in_every_row():
    with pytest.raises(ValueError, match="do not fit its columns"):
        Table("t", None, ("a", "b"), ((1, 2), (1,)))


def test_points_of_a_series_have_both_coordinates():
    with pytest.raises(ValueError, match="equal length"):
        Series("a", x=(1.0,), y=(1.0, 2.0))
    with pytest.raises(ValueError, match="equal length"):
        Series("a", x=(1.0,), y=(1.0,), error=())


def test_a_study_is_an_evaluation_with_folds_and_is_read_back_as_written():
    figures = (0.5, 1.0, 0.4, 0.4, 0.4, -0.1, 30, 70, None, None)
    fold = FoldResult(*figures, n_learned_from=50, n_held_out=50)
    study = StudyRecord({"seed": 0}, {"etips": (fold, fold)})
    table = Table("t", "n", ("a", "b"), (("x", 1.5),))
    data = DataSummary(30, 60, 3, 1)
    made = StudyResult(data, (), 1.0, None, None, "A study", "lead", (table,), (), study)
    assert from_json(StudyResult, to_json(made)) == made
    assert repr(made) == "StudyResult on 60 decisions"


def test_a_hidden_pair_is_a_row_without_numbers():
    data = DataSummary(n_stays=300, n_decisions=300, n_actions=2, lag=0)
    pair = PairResult("a", CLINICIANS, Figure(), None, None, None, "reliable", (), "unknown", "hid")
    comparison = Comparison(data, (), (pair,), "snips")
    frame = comparison.to_frame(library="polars")
    assert tuple(frame.columns) == COLUMNS
    assert frame["difference"].to_list() == [None]
    assert "hidden or not known" in repr(comparison)
    assert comparison.to_json()["pairs"][0]["difference"]["value"] is None
    assert pair.conclusion.kind == "unknown"


def test_it_is_read_back_as_it_was():
    assert from_json(Bench, BENCH.to_json()) == BENCH


def test_a_row_is_found_by_its_method():
    assert STANDING.row("lightgbm") is ROWS[1]
    assert STANDING.row(None) is None
