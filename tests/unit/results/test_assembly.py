"""What a report shows beyond the estimates: right numbers, and none about a few people."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from small_worlds import one_thread, ward

from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.errors import SettingError
from etips.evaluation.diagnostics import RARE, diagnose
from etips.evaluation.log import Log, view
from etips.files.fingerprint import fingerprint
from etips.files.json_documents import canonical
from etips.learn.fitting.candidates import Candidate
from etips.results import assembly
from etips.results.evaluate import assess_policies
from etips.results.overlap import grid_of
from etips.results.parsing import parse_results
from etips.results.results import Results
from etips.results.serialization import to_json
from etips.results.subgrouping import WITHHELD, round_edges
from etips.results.summaries import summarize_data

__all__ = ["one_thread"]

DOSES = tuple(f"fluid {action // 2}, vasopressor {action % 2}" for action in range(4))


def hospital(n_stays=240, *, seed=0, rare=5, n_actions=4):
    """Stays with a category that `rare` people have, an age, gaps in a feature, one rare action."""
    rng = np.random.default_rng(seed)
    offsets = np.arange(n_stays + 1) * 3
    n_steps = int(offsets[-1])
    action = rng.integers(0, n_actions - 1, n_steps)
    action[:4] = n_actions - 1
    ward_of = np.where(np.arange(n_stays) < rare, 2, np.arange(n_stays) % 2)
    gone = rng.random(n_steps) < 0.2
    features = np.stack([rng.normal(size=n_steps), np.where(gone, np.nan, 1.0), gone], axis=1)
    schema = Schema(
        sequence=("hr", "lactate", "lactate_missing"),
        static=("age", "ward=icu", "ward=step-down", "ward=SECRET"),
        n_actions=n_actions,
        lag=0,
        actions=DOSES if n_actions == 4 else (),
        categories={"ward": ("icu", "step-down", "SECRET")},
        indicators=("lactate",),
        provenance={"source": "a test", "seed": "7"},
    )
    return Trajectories(
        sequence=features.astype(np.float32),
        offsets=offsets,
        schema=schema,
        action=action,
        loss=(rng.random(n_steps) < 0.4).astype(np.float64),
        static=np.column_stack([rng.uniform(20, 90, n_stays), np.eye(3)[ward_of]]).astype(
            np.float32
        ),
    )


def logged(data, *, full=True):
    n, k = data.n_decisions, data.n_actions
    chances = np.full((n, k), 1 / k)
    return Log(
        loss=data.logged_loss,
        action=data.logged_action,
        propensity=np.full(n, 1 / k),
        cluster=data.decisions().stay,
        n_actions=k,
        propensities=chances if full else None,
    )


def leaning(data, seed=1):
    """A policy that prefers action 0 and depends on nothing."""
    table = np.full((data.n_decisions, data.n_actions), 0.1)
    table[:, 0] = 1 - 0.1 * (data.n_actions - 1)
    return table


def make_exhibits(*args, **kwargs):
    """As JSON has them: what a reader of results.json sees."""
    return to_json(assembly.make_exhibits(*args, **kwargs))


@pytest.fixture(scope="module")
def made():
    data = hospital()
    return data, logged(data), leaning(data)


@pytest.fixture(scope="module")
def exhibits(made):
    data, log, table = made
    return make_exhibits(data, log, {"p": table}, headline="p", settings={"seed": 3})


def document_of(data, log, table):
    methods = assess_policies({"p": table}, log, data)
    exhibits = assembly.make_exhibits(data, log, {"p": table}, headline="p", settings={"seed": 3})
    results = Results(summarize_data(data), methods, 1.0, exhibits)
    return json.loads(canonical(results.to_json()))


def test_h1_a_report_holds_every_field_of_the_schema(made):
    """H1: attrition, missingness, actions, calibration, overlap, subgroups, seeds, hash and all."""
    document = document_of(*made)
    assert parse_results(document).to_json() == document
    assert document["exhibits"]["notice"] == "For research, not for clinical use."
    assert document["exhibits"]["fingerprint"] == fingerprint(data=made[0])
    assert document["exhibits"]["seeds"] == {"seed": 3, "simulation": "7"}
    assert {"etips", "python", "numpy", "torch"} <= set(document["exhibits"]["versions"])
    assert document["exhibits"]["policies"] == ["p"]


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
    assert found["grid"] == {"n_rows": 2, "n_columns": 2, "row": "fluid", "column": "vasopressor"}


def test_a_grid_is_seen_in_names_only_if_they_run_in_order():
    names = tuple(f"fluid {a // 5}, vasopressor {a % 5}" for a in range(25))
    assert grid_of(names).n_rows == 5
    for other in (names[::-1], names[:24], (), ("low", "high"), (*names[:-1], "other 4, x 4")):
        assert grid_of(other) is None


def test_calibration_and_weights_hold_what_they_say(made, exhibits):
    _, log, table = made
    (bin_,) = [b for b in exhibits["calibration"]["bins"] if b["n_pairs"]]
    assert bin_["stated"] == pytest.approx(0.25)
    assert bin_["observed"] == pytest.approx(0.25)
    assert bin_["n_pairs"] == log.n_decisions * 4
    assert exhibits["calibration"]["log_loss"] == pytest.approx(np.log(4))
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


def test_subgroups_are_categories_bands_and_time_and_none_of_a_few(exhibits):
    tables = {table["feature"]: table["rows"] for table in exhibits["subgroups"]}
    assert set(tables) == {"ward", "age", "step of the stay"}
    hidden = [row for row in tables["ward"] if row["n_people"] is None]
    assert [row["level"] for row in hidden] == [WITHHELD, WITHHELD]
    assert all(value is None for row in hidden for key, value in row.items() if key != "level")
    assert sum(row["n_people"] for row in tables["age"]) == 240
    assert all(row["verdict"] for row in tables["age"])
    for row in tables["age"]:
        assert row["gain"] == pytest.approx(row["risk"] - row["logged_risk"])
    assert "SECRET" not in json.dumps(exhibits)


def test_an_age_in_days_is_shown_in_years():
    data = hospital(120, rare=0)
    static = np.array(data.static)
    static[:, 0] *= 365.25
    days = replace(data, static=static)
    found = make_exhibits(days, logged(days), {"p": leaning(days)}, headline="p")
    levels = [row["level"] for row in rows_of(found, "age in years")]
    assert levels == [r["level"] for r in rows_of(make_exhibits(
        data, logged(data), {"p": leaning(data)}, headline="p"), "age")]  # fmt: skip


def test_stays_that_end_early_are_not_counted_by_subtraction():
    data = hospital(60, rare=0)
    keep = np.ones(data.n_steps, bool)
    keep[[5, 8]] = False  # the last steps of two stays are no decisions
    few = replace(data, eligible=keep)
    found = make_exhibits(few, logged(few), {"p": leaning(few)}, headline="p")
    shown = [row["n_people"] for row in rows_of(found, "step of the stay")]
    assert [row for row in shown if row is not None] in ([], [60])
    one = replace(data, eligible=np.arange(data.n_steps) >= 3)  # a stay without any decision
    stages = make_exhibits(one, logged(one), {"p": leaning(one)}, headline="p")["flow"]["stages"]
    assert [stage["count"] for stage in stages] == [60, None]  # 60 stands elsewhere too


def test_edges_of_bands_are_round_and_no_ones_own_value():
    values = np.random.default_rng(0).normal(61.234567, 15, 500)
    edges = round_edges(values)
    assert edges == [50.0, 60.0, 70.0]
    assert not np.isin(edges, values).any()
    assert round_edges(np.full(50, 3.0)) == []


def test_missing_values_are_counted_where_a_flag_or_nan_says_so(made, exhibits):
    found = exhibits["missingness"]
    gone = np.isnan(made[0].sequence[:, 1])
    assert [f["name"] for f in found["features"]] == ["lactate"]
    assert found["features"][0]["share"] == pytest.approx(gone.mean())
    assert found["n_features"] == 4  # hr, lactate, age, ward
    assert found["n_complete"] == 3


def test_a_gap_of_a_few_people_is_hidden():
    data = ward(n_stays=60, lag=0)
    sequence = np.array(data.sequence)
    sequence[:3, 2] = np.nan
    schema = replace(data.schema, indicators=("lactate",))
    few = replace(data, sequence=sequence, schema=schema)
    table = np.full((few.n_decisions, 3), 1 / 3)
    found = make_exhibits(few, logged(few), {"p": table}, headline="p")["missingness"]
    assert found["features"] == [{"name": "lactate", "share": None}]


def test_the_funnel_of_a_cohort_comes_before_the_data_and_small_steps_are_hidden(made):
    data, log, table = made
    stages = [("all stays", 900), ("adults", 893), ("with sepsis", 400)]
    cohort = {
        "stages": [{"name": name, "n_stays": count} for name, count in stages],
        "n_rows": 1000,
        "missing_share": {"SOFA": 0.25, "rare": 0.004, "whole": 0.0},
    }
    found = make_exhibits(data, log, {"p": table}, headline="p", cohort=cohort)
    assert [(s["name"], s["count"]) for s in found["flow"]["stages"]] == [
        ("all stays", 900),
        ("adults", None),
        ("with sepsis", 400),
        ("stays in the evaluated data", 240),
        ("stays with a decision", 240),
    ]
    shares = {f["name"]: f["share"] for f in found["missingness"]["features"]}
    assert shares == {"SOFA": 0.25, "rare": None}
    assert found["flow"]["source"] == "cohort"


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


def test_p2_effective_sizes_of_a_few_are_hidden(made):
    """P2: with equal weights an effective size is a count of decisions."""
    data, log, table = made
    even = replace(log, propensity=np.full(log.n_decisions, 0.25), propensities=None)
    chosen = np.zeros_like(table)
    rows = np.arange(log.n_decisions)
    chosen[rows, np.where((rows >= 100) & (rows < 106), log.action, 3)] = 1
    found = make_exhibits(data, even, {"p": chosen}, headline="p")["actions"]["effective_n"]
    assert all(size is None or size == 0 or size >= 11 for size in found)
    (method,) = assess_policies({"p": chosen}, even, data)
    assert 0 < diagnose(even, view(even, chosen)).effective_sample_size < 11
    assert method.diagnostics.effective_sample_size is None


def test_paths_settings_and_what_json_lacks_become_plain(made):
    data, log, table = made
    candidate = Candidate(math.nan, 2, math.inf, math.inf, 0.0, 0.0, chosen=True)
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


def rows_of(found, feature):
    return next(table["rows"] for table in found["subgroups"] if table["feature"] == feature)


def assert_safe(counts, total):
    if counts == [None]:
        return  # the table as a whole is withheld
    shown = [count for count in counts if count is not None]
    rest, n_hidden = total - sum(shown), counts.count(None)
    assert not any(0 < count < 11 for count in shown)
    assert rest == 0 or (n_hidden >= 2 and rest >= 11)
