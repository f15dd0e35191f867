"""Where log and policy meet: shares, calibration, weights, balance."""

import numpy as np
import pytest
from confounded_worlds import confounded, marginal, stays_of
from hospital_stays import logged, make_exhibits

from etips.data.intake.dose_classes import DoseClasses, dose_names
from etips.data.intake.recipe import ActionReading, Recipe
from etips.data.schema import Schema
from etips.evaluation.diagnostics import RARE
from etips.evaluation.log import Log, view
from etips.results.overlap import compare_features, grid_of


def test_shares_of_actions_are_counted_and_few_are_hidden_with_one_more(made, exhibits):
    data, log, _ = made
    found = exhibits["actions"]
    counts = np.bincount(log.action, minlength=4)
    assert counts[3] == 4
    assert found["n_logged"][3] is None
    assert found["n_logged"].count(None) == 2  # and the smallest other
    for place in range(4):
        if found["n_logged"][place] is not None:
            assert found["n_logged"][place] == counts[place]
            assert found["logged_share"][place] == pytest.approx(counts[place] / data.n_decisions)
        else:
            assert found["logged_share"][place] is None
            assert found["effective_n"][place] is None
    assert found["recommended_share"] == [1.0, 0.0, 0.0, 0.0]
    assert found["supported_share"] == [1.0] * 4
    assert RARE < 1 / 4
    sizes = {"n_rows": 2, "n_columns": 2, "row_levels": [], "column_levels": []}
    assert found["grid"] == {**sizes, "row": "fluid", "column": "vasopressor"}


def test_a_grid_is_seen_in_names_only_if_they_run_in_order():
    names = tuple(f"fluid {a // 5}, vasopressor {a % 5}" for a in range(25))
    assert grid_of(schema(names)).n_rows == 5
    for other in (names[::-1], names[:24], (), ("low", "high"), (*names[:-1], "other 4, x 4")):
        assert grid_of(schema(other)) is None


def test_a_grid_of_doses_says_what_its_classes_are():
    fluid = DoseClasses("fluid_ml", (250.0, 500.0), (0.0, 100.0, 400.0, None), unit="ml")
    vaso = DoseClasses("vaso", (0.1,), (0.0, None, 0.2))
    names = dose_names([fluid, vaso])
    made = Schema(sequence=("x",), n_actions=12, actions=names, recipe=Recipe(doses=(fluid, vaso)))
    grid = grid_of(made)
    assert (grid.n_rows, grid.n_columns, grid.row, grid.column) == (4, 3, "fluid", "vaso")
    assert grid.row_levels[2] == "250-500 (median 400 ml)"
    assert grid.column_levels == ("none", "up to 0.1", "over 0.1 (median 0.2)")


def test_combined_columns_are_no_grid_of_doses():
    reading = ActionReading(("a", "b"), (("0", "0"), ("0", "1"), ("1", "0"), ("1", "1")))
    names = ("a 0, b 0", "a 0, b 1", "a 1, b 0", "a 1, b 1")
    made = Schema(sequence=("x",), n_actions=4, actions=names, recipe=Recipe(action=reading))
    assert grid_of(made) is None


def schema(names):
    return Schema(sequence=("x",), n_actions=max(len(names), 1), actions=names)


def test_calibration_and_weights_hold_what_they_say(made, exhibits):
    _, log, table = made
    (bin_,) = [b for b in exhibits["calibration"]["bins"] if b["n_pairs"]]
    assert bin_["stated"] == pytest.approx(0.25)
    assert bin_["observed"] == pytest.approx(0.25)
    assert bin_["n_pairs"] == log.n_decisions * 4
    assert exhibits["calibration"]["log_loss"] == pytest.approx(np.log(4))
    assert exhibits["calibration"]["frequency_log_loss"] < np.log(4)
    actions = exhibits["calibration"]["actions"]
    assert len(actions) == 4
    shares = exhibits["actions"]["logged_share"]
    assert [own["observed"] for own in actions] == shares
    assert all((own["stated"] is None) == (own["observed"] is None) for own in actions)
    weights = exhibits["weights"]
    assert sum(weights["decisions"]) == pytest.approx(1)
    assert sum(weights["weight"]) == pytest.approx(1)
    heavy = view(log, table).weight >= 2
    assert weights["decisions"][weights["edges"].index(2.0)] == pytest.approx(heavy.mean())


def test_without_propensities_of_all_actions_the_report_says_why_parts_are_absent(made):
    data, _, table = made
    found = make_exhibits(data, logged(data, full=False), {"p": table}, headline="p")
    assert "not known" in found["calibration"]["absent"]
    assert "not known" in found["abstention"]["absent"]
    assert found["actions"]["supported_share"] is None
    fitted = np.full(table.shape, 1 / 4)
    beside = make_exhibits(
        data, logged(data, full=False), {"p": table}, headline="p", propensities=fitted
    )
    assert beside["calibration"]["used"] is False
    assert beside["actions"]["supported_share"] == [1.0] * 4


def test_balance_leaves_out_a_feature_that_names_a_few(exhibits):
    names = {feature["name"] for feature in exhibits["balance"]["features"]}
    assert "ward=SECRET" not in names
    assert {"hr", "age", "ward=icu"} <= names


def test_features_are_compared_before_and_after_balancing():
    world = confounded("linear", n_stays=400, seed=0)
    data = stays_of(world)
    before = Log.of(data, propensities=marginal(world))
    after = before.weighed_by(world.right)
    always = np.eye(3)[np.zeros(data.n_decisions, int)]
    found = compare_features(data, after, view(after, always), before)
    first = next(feature for feature in found.features if feature.name == "a")
    assert abs(first.after) < 0.2 < abs(first.fitted)
    assert found.n_above_fitted >= 1
    plain = compare_features(data, after, view(after, always))
    assert plain.n_above_fitted is None
    assert all(feature.fitted is None for feature in plain.features)
