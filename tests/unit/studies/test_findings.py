"""What a study found: figures of a fold, their means, the paper's tables, and charts."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hand_made_findings import PATH, findings
from small_worlds import CLINIC

from etips.evaluation.log import Log
from etips.learn.fitting.candidates import Candidate
from etips.learn.learners.catalogue import METHODS
from etips.learn.nuisance import stay_value
from etips.policies.deployed import Deployed, take_likeliest
from etips.results.evaluate import assess_policies
from etips.results.followed_policies import Followed, as_followed
from etips.results.study_result import Measures
from etips.studies.findings import (
    Spread,
    about,
    measure_policy,
    over_folds,
    show_groups,
    stay_outcomes,
)
from etips.studies.paper_tables import (
    TABLE1,
    TABLE1_ABOUT,
    TABLE2,
    external_columns,
    learned_from,
    make_tables,
    show_stay,
    table1,
    table2,
    translation_paths,
    truth,
)
from etips.worlds.two_hospitals import SECOND, simulate_place

PLAIN = Measures(0.5, 1.0, 0.4, 0.4, 0.4, -0.1, 30, 70, None, None)


@pytest.fixture(scope="module")
def clinic():
    stays = CLINIC.log(100, seed=0)
    return Log.of(stays, predicted=np.full((stays.n_decisions, stays.n_actions), 0.5)), stays


def test_a_policy_is_measured_by_its_formulas(clinic):
    log, stays = clinic
    policy = np.tile([0.5, 0.3, 0.2], (stays.n_decisions, 1))
    found = measure_policy(log, stays, policy)
    weight = policy[log.rows, log.action] / log.propensity
    assert found.matching_factor == pytest.approx(weight.mean())
    assert found.ips == pytest.approx((weight * log.loss).mean())
    assert found.snips == pytest.approx(found.ips / found.matching_factor)
    assert found.dr == pytest.approx((0.5 + weight * (log.loss - 0.5)).mean())
    matched = log.action == 0
    assert (found.n_matched, found.n_unmatched) == (matched.sum(), (~matched).sum())
    assert found.atenp == pytest.approx(log.loss[matched].mean() - log.loss[~matched].mean())
    assert found.risk == pytest.approx((policy * stays.true_expected_loss()).sum(axis=1).mean())
    assert found.drawn_risk == found.risk


def test_what_a_policy_does_is_measured_and_what_it_would_draw_stands_beside(clinic):
    log, stays = clinic
    chances = np.tile([0.5, 0.3, 0.2], (stays.n_decisions, 1))
    away = np.arange(stays.n_decisions) % 2 == 0
    sure = take_likeliest(chances, away)
    found = measure_policy(log, stays, Followed(sure, Deployed(chances, away)))
    weight = np.where(away, 1.0, (log.action == 0) / log.propensity)
    assert found.matching_factor == pytest.approx(weight.mean())
    assert found.ips == pytest.approx((weight * log.loss).mean())
    expected, clinicians = stays.true_expected_loss(), stays.true_logging()
    left = (clinicians * expected).sum(axis=1)
    assert found.risk == pytest.approx(np.where(away, left, expected[:, 0]).mean())
    drawn = (chances * expected).sum(axis=1)
    assert found.drawn_risk == pytest.approx(np.where(away, left, drawn).mean())


def test_a_policy_that_draws_is_measured_by_what_it_drew(clinic):
    log, stays = clinic
    uniform = np.full((stays.n_decisions, 3), 1 / 3)
    drawn = np.arange(stays.n_decisions) % 3
    found = measure_policy(log, stays, uniform, answers=drawn)
    assert found.n_matched == (log.action == drawn).sum()
    expected = stays.true_expected_loss()[log.rows, drawn].mean()
    assert found.accuracy == pytest.approx(1 - expected)


def test_the_spread_over_folds_is_the_sample_standard_deviation():
    folds = [replace(PLAIN, accuracy=value) for value in (0.2, 0.4, 0.6)]
    found = over_folds(folds, lambda fold: fold.accuracy)
    assert (found.mean, found.deviation) == pytest.approx((0.4, 0.2))
    assert found.show() == "0.400 ± 0.200"
    assert over_folds(folds[:1], lambda fold: fold.accuracy).show() == "0.200"
    assert over_folds(folds, lambda fold: fold.risk).show() == "-"


def test_a_fold_without_the_figure_does_not_count():
    folds = [replace(PLAIN, atenp=None), replace(PLAIN, atenp=-0.2)]
    assert over_folds(folds, lambda fold: fold.atenp).mean == -0.2


def test_a_mean_that_rounds_to_nothing_has_no_sign():
    assert Spread(-0.0001, 0.01).show() == "0.000 ± 0.010"


def test_a_group_under_eleven_hides_both_sizes(clinic):
    log, stays = clinic
    few = np.where(np.arange(stays.n_decisions) < 5, log.action, (log.action + 1) % 3)
    found = measure_policy(log, stays, np.eye(3)[few])
    assert (found.n_matched, found.n_unmatched) == (None, None)
    assert show_groups([PLAIN, found]) == "one under 11"
    none = measure_policy(log, stays, np.eye(3)[(log.action + 1) % 3])
    assert (none.n_matched, none.n_unmatched) == (0, stays.n_decisions)
    assert show_groups([none]) == f"0 / {stays.n_decisions}"


def test_the_mean_path_averages_folds_and_takes_what_most_chose():
    path = findings().mean_path("etips")
    assert [c.translation for c in path[:2]] == [0.3, 0.7]
    assert math.isnan(path[2].translation)
    assert [c.chosen for c in path] == [False, True, False]
    assert [c.risk for c in path] == pytest.approx([0.5, 0.4, 0.6])
    assert all(isinstance(c, Candidate) for c in path)


def test_what_candidates_were_compared_on_is_said_in_words():
    assert findings().judged_on == "on what their networks did not learn from"
    assert findings().expected_factor == "The matching factor is 1 in expectation."


def method(**gain):
    head = SimpleNamespace(risk=0.4, low=0.3, high=0.5)
    own = SimpleNamespace(**gain) if gain else None
    return SimpleNamespace(estimates=[head], gain=own, verdict="doubtful")


def test_a_policy_has_a_cell_for_each_external_column():
    columns = external_columns([method(difference=-0.1, low=-0.2, high=0.0), method()])
    assert columns["external risk"] == ["0.400 [0.300, 0.500]"] * 2
    assert columns["external change"] == ["-0.100 [-0.200, +0.000]", "-"]
    assert columns["external verdict"] == ["doubtful"] * 2
    data = simulate_place(30, seed=1, place=SECOND)
    assert f"{data.n_decisions:,} decisions" in about(data)


def looked_at(*names):
    return SimpleNamespace(whole_stay=names, seed=0)


def test_only_what_the_study_asks_for_is_looked_at_and_shown(monkeypatch):
    monkeypatch.setattr(stay_value, "LEAST_BATCHES", 2)
    monkeypatch.setattr(stay_value, "ROUND_STEPS", 4)
    data = CLINIC.log(120, seed=0)
    log = Log.of(data, propensities=data.true_logging())
    policies = {"etips": as_followed(data.true_logging() ** 0 / 3), "random": None}
    assert stay_outcomes(looked_at(), policies, log, data) == {}
    found = stay_outcomes(looked_at("etips", "eips"), policies, log, data)
    assert list(found) == ["etips"]
    (method,) = assess_policies({"etips": policies["etips"]}, log, data, stays=found)
    assert method.whole_stay.verdict in show_stay(method)
    assert show_stay(SimpleNamespace(whole_stay=None)) == "-"


def test_table_one_has_the_published_accuracy_beside_ours():
    table = table1(findings("table1"))
    assert table.columns[:3] == ("method", "accuracy", "paper")
    assert [row[0] for row in table.rows] == ["etips", "random"]
    assert [row[2] for row in table.rows] == ["0.923 ± 0.0122", "0.363 ± 0.0001"]
    assert "random is called RP in the paper." in table.note


def test_table_two_has_true_risks_where_they_are_known_and_the_verdict_of_all_folds():
    made = findings()
    table = table2(made)
    assert table.columns[-2:] == ("true risk", "true risk, drawn")
    assert "paper" not in table.columns
    verdicts = [row[table.columns.index("verdict")] for row in table.rows]
    assert verdicts == [method.verdict for method in made.assessed]


def test_the_translation_that_each_fold_chose_is_listed():
    chosen = make_tables(findings())[1]
    assert chosen.rows == (("etips", "0.7", "0.7"),)


def test_what_each_fold_learned_from_is_averaged_over_folds():
    table = learned_from(findings())
    assert table.rows[0] == ("etips", "0.7500", "0.900")
    assert table.rows[1] == ("random", "0.7500", "-")
    assert table.note.startswith("A fold may learn from about 30 stays and is judged on about 30.")


def test_every_figure_is_of_a_method_that_there_is():
    named = {*TABLE1["digits-zeros"], *TABLE1["digits-rows"], *TABLE2}
    assert named <= set(METHODS)
    assert set(TABLE1_ABOUT) == {"full-supervision", "logging"}


def test_every_estimate_stands_against_the_truth_of_its_policy():
    made = findings()
    series = truth(made).series
    assert [own.name for own in series] == ["SNIPS", "IPS", "DR"]
    for own in series:
        assert own.x == tuple(method.truth for method in made.assessed)
        assert len(own.error) == len(own.y) == 2


def test_a_path_is_drawn_for_methods_that_have_one_and_of_translations_alone():
    snips, factor = translation_paths(findings())
    assert [own.name for own in snips.series] == ["etips"]
    assert snips.series[0].x == (0.3, 0.7)
    assert snips.series[0].y == (0.5, 0.4)
    assert factor.series[0].y == (1.0, 0.9)
    assert translation_paths(findings(path=PATH[:1])) == []
