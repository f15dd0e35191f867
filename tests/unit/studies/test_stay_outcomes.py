"""Policies of a study that decide throughout."""

from types import SimpleNamespace

import pytest
from small_worlds import CLINIC

from etips.errors import SettingError
from etips.evaluation.log import Log
from etips.learn.nuisance import stay_value
from etips.results.evaluate import assess_policies
from etips.results.followed_policies import as_followed
from etips.studies.experiment import read_experiment, shipped
from etips.studies.stay_outcomes import show_stay, stay_outcomes


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch):
    monkeypatch.setattr(stay_value, "LEAST_BATCHES", 2)
    monkeypatch.setattr(stay_value, "ROUND_STEPS", 4)


def looked_at(*names):
    return SimpleNamespace(whole_stay=names, seed=0)


def test_only_what_the_study_asks_for_is_looked_at_and_shown():
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
