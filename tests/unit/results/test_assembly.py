"""What a report shows beyond the estimates: right numbers, and none about a few people."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hospital_stays import hospital, leaning, logged, make_exhibits, rows_of

from etips.errors import SettingError
from etips.files.fingerprint import fingerprint
from etips.files.json_documents import canonical
from etips.learn.fitting.candidates import Candidate
from etips.results import assembly
from etips.results.evaluate import assess_policies
from etips.results.parsing import parse_results
from etips.results.results import Results
from etips.results.summaries import summarize_data


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
