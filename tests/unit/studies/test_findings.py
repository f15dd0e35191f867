"""What the tasks of a study found, put together: paths, words, and one policy of all folds."""

import math
from types import SimpleNamespace

import pytest
from hand_made_findings import findings
from small_worlds import CLINIC

from etips.errors import SettingError
from etips.evaluation.log import Log
from etips.learn.fitting.candidates import Candidate
from etips.learn.nuisance import stay_value
from etips.results.evaluate import assess_policies
from etips.results.followed_policies import as_followed
from etips.studies.experiment import read_experiment, shipped
from etips.studies.findings import EXTERNAL_COLUMNS, ExternalTest, show_stay, stay_outcomes
from etips.worlds.two_hospitals import SECOND, simulate_place


def test_the_path_of_a_method_is_that_of_each_fold():
    assert [len(path) for path in findings().path("etips")] == [3, 3]
    assert findings().path("random") == [(), ()]


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


def test_a_policy_has_a_cell_for_each_column():
    test = ExternalTest(
        simulate_place(30, seed=1, place=SECOND),
        {"a": method(difference=-0.1, low=-0.2, high=0.0), "b": method()},
    )
    assert test.cells("a") == ["0.400 [0.300, 0.500]", "-0.100 [-0.200, +0.000]", "doubtful"]
    assert test.cells("b")[1] == "-"
    assert len(EXTERNAL_COLUMNS) == 3
    assert f"{test.data.n_decisions:,} decisions" in test.note


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


def test_the_shipped_studies_look_at_the_paper_s_own_method():
    for name in ("demo", "table2"):
        assert read_experiment(shipped(name), name=name).whole_stay == ("etips",)


def test_an_unknown_method_is_refused():
    with pytest.raises(SettingError, match="whole_stay"):
        read_experiment(shipped("demo"), name="demo", whole_stay=("nobody",))
