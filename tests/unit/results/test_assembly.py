"""What a report shows beyond the estimates: right numbers, and none about a few people."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hospital_stays import hospital, leaning, logged, make_exhibits, rows_of
from missing_worlds import make_missing

from etips.data.intake.dose_classes import DoseClasses, dose_names
from etips.data.recipe import ActionReading, Recipe
from etips.data.schema import Schema
from etips.errors import SettingError
from etips.evaluation.diagnostics import RARE
from etips.evaluation.log import view
from etips.files.fingerprint import fingerprint
from etips.files.json_documents import canonical
from etips.learn.fitting.candidates import Candidate
from etips.results import assembly
from etips.results.assembly import MOST_COLUMNS, grid_of, measure_features
from etips.results.data_summary import summarize_data
from etips.results.evaluate import assess_policies
from etips.results.parsing import parse_results
from etips.results.results import Results


def document_of(data, log, table):
    methods = assess_policies({"p": table}, log, data)
    exhibits = assembly.make_exhibits(data, log, {"p": table}, headline="p", settings={"seed": 3})
    results = Results(summarize_data(data), methods, 1.0, exhibits)
    return json.loads(canonical(results.to_json()))


def assert_safe(counts, total):
    if counts == [None]:
        return  # the table as a whole is withheld
    shown = [count for count in counts if count is not None]
    rest, n_hidden = total - sum(shown), counts.count(None)
    assert not any(0 < count < 11 for count in shown)
    assert rest == 0 or (n_hidden >= 2 and rest >= 11)


def test_h1_a_report_holds_every_field_of_the_schema(made):
    """H1: attrition, missingness, actions, calibration, overlap, subgroups, seeds, hash and all."""
    document = document_of(*made)
    assert parse_results(document).to_json() == document
    assert document["exhibits"]["notice"] == "For research, not for clinical use."
    assert document["exhibits"]["fingerprint"] == fingerprint(data=made[0])
    assert document["exhibits"]["seeds"] == {"seed": 3, "simulation": "7"}
    assert {"etips", "python", "numpy", "torch"} <= set(document["exhibits"]["versions"])
    assert document["exhibits"]["policies"] == ["p"]


def test_abstention_points_carry_a_verdict(exhibits):
    points = exhibits["abstention"]
    assert points[0]["coverage"] == 1.0
    assert {point["verdict"] for point in points} <= {"reliable", "doubtful", "unusable"}


def test_p2_abstention_does_not_give_a_few_bad_outcomes_away(made):
    """P2: where the policy never speaks, risk times decisions is the number of bad outcomes."""
    data, log, table = made
    few = replace(log, loss=(np.arange(log.n_decisions) < 7).astype(float))
    for loss in (few.loss, 1 - few.loss):
        found = make_exhibits(data, replace(few, loss=loss), {"p": table}, headline="p")
        assert "too rare" in found["abstention"]["absent"]


def test_paths_settings_and_what_json_lacks_become_plain(made):
    data, log, table = made
    candidate = Candidate(math.nan, math.inf, math.inf, 0.0, 0.0, chosen=True)
    found = make_exhibits(
        data,
        log,
        {"p": table, "q": table},
        headline="q",
        paths={"p": [candidate], "q": []},
        settings={"deep": {"seed": 4, "rate": float("inf")}, "folds": (1, 2)},
    )
    assert set(found["paths"]) == {"p"}
    assert found["paths"]["p"][0]["translation"] is None
    assert found["paths"]["p"][0]["chosen"] is True
    assert found["settings"] == {"deep": {"seed": 4, "rate": "inf"}, "folds": [1, 2]}
    assert found["seeds"]["deep, seed"] == 4
    canonical(found)


def test_a_headline_that_is_no_policy_is_refused(made):
    data, log, table = made
    with pytest.raises(SettingError, match=r"^headline: "):
        make_exhibits(data, log, {"p": table}, headline="q")


@pytest.mark.parametrize("seed", range(20))
def test_p2_no_table_of_a_whole_report_gives_a_few_people_away(seed):
    """P2: twenty random hospitals; what is shown of each table is subtracted from its total."""
    rng = np.random.default_rng(seed)
    data = hospital(int(rng.integers(30, 90)), seed=seed, rare=int(rng.integers(0, 12)))
    log, table = logged(data), leaning(data)
    document = document_of(data, log, table)
    found = document["exhibits"]
    n, n_stays = data.n_decisions, data.n_stays
    assert_safe([row["n_people"] for row in rows_of(found, "age")], n_stays)
    assert_safe([row["n_people"] for row in rows_of(found, "ward")], n_stays)
    for name in ("age", "ward", "step of the stay"):
        rows = rows_of(found, name)
        assert_safe([row["n_decisions"] for row in rows], n)
        events = [
            None if row["n_people"] is None else round(row["n_decisions"] * row["logged_risk"])
            for row in rows
        ]
        assert_safe(events, int(data.logged_loss.sum()))
    assert_safe(found["actions"]["n_logged"], n)
    for shares in (found["actions"]["recommended_share"], found["weights"]["decisions"]):
        assert_safe([None if share is None else round(share * n) for share in shares], n)
    matched = document["methods"][0]["atenp"]
    assert_safe([matched["n_matched"], matched["n_unmatched"]], n)


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


def test_features_are_measured_by_their_names_and_their_columns_belong_together():
    data = make_missing(1_500, seed=0).data
    found = measure_features(data)
    names = [feature.names for feature in found if len(feature.names) == 1]
    assert set(names) == {("lactate",), ("SOFA",), ("age",), ("weight",)}
    assert names[-1] == ("weight",)  # no action hangs on it
    flagged = replace(
        data,
        schema=replace(
            data.schema,
            sequence=("ward=icu", "ward=er", "age", "age_missing"),
            categories={"ward": ("icu", "er")},
        ),
    )
    found = measure_features(flagged)
    assert {feature.names for feature in found} == {("ward",), ("age",)} | {found[-1].names}


def test_pixels_are_no_features_to_compare_with():
    data = make_missing(50, seed=1).data
    wide = MOST_COLUMNS + 1
    schema = replace(data.schema, sequence=tuple(f"p{n}" for n in range(wide)))
    images = replace(data, sequence=np.zeros((50, wide), np.float32), schema=schema)
    assert measure_features(images) == ()
