"""The registry of risk estimators: one entry each, and nothing that lists them by hand."""

import inspect
from dataclasses import replace
from pathlib import Path

import pytest
from evaluation_logs import make_log

from etips import evaluation
from etips.errors import SettingError
from etips.evaluation import ESTIMATORS, assess, estimator_names, view
from etips.evaluation.estimators import BESIDE, MODEL, WEIGHTS, find_estimators

DOCUMENT = Path(__file__).parents[3] / "docs" / "method" / "evaluation.md"


@pytest.mark.parametrize("entry", ESTIMATORS.values(), ids=list(ESTIMATORS))
def test_every_entry_is_named_after_its_formula_and_explained(entry):
    log, table, _ = make_log()
    assert entry.estimate(log, view(log, table)).estimator == entry.name == entry.formula.__name__
    assert getattr(evaluation, entry.name) is entry.formula
    assert len(entry.label) <= 14  # the room beside its interval on a page
    assert entry.sentence.endswith(".")
    assert f"| `{entry.name}` |" in DOCUMENT.read_text()


@pytest.mark.parametrize("entry", ESTIMATORS.values(), ids=list(ESTIMATORS))
def test_what_an_entry_needs_is_what_its_formula_asks_for(entry):
    own = inspect.signature(entry.formula).parameters
    required = {name for name, p in own.items() if p.default is p.empty}
    assert required == {*entry.needs, "cluster"}


def test_without_predicted_losses_those_remain_that_need_no_model():
    log, _, _ = make_log(predicted=False)
    weighted = tuple(name for name, entry in ESTIMATORS.items() if entry.needs == WEIGHTS)
    assert estimator_names(log) == weighted
    assert {"snips", "ips", "clipped_ips"} <= set(weighted)
    assert ESTIMATORS["dm"].needs == MODEL
    with pytest.raises(SettingError, match=rf"^estimators: must be among {', '.join(weighted)}\.$"):
        find_estimators(("snips", "dr"), log)


def test_the_headline_uses_predicted_losses_where_they_are_and_needs_none():
    assert estimator_names(make_log()[0])[0] == "sndr"
    assert estimator_names(make_log(predicted=False)[0])[0] == "snips"
    assert sorted(estimator_names(make_log()[0])) == sorted(ESTIMATORS)
    assert BESIDE == ("snips", "ips", "dr")


def test_a_new_entry_is_estimated_like_the_others(monkeypatch):
    added = replace(ESTIMATORS["snips"], name="own", label="Own")
    monkeypatch.setitem(ESTIMATORS, "own", added)
    log, table, _ = make_log()
    assert estimator_names(log)[-1] == "own"
    estimates = assess(log, table).estimates
    own, plain = estimates[-1], next(e for e in estimates if e.estimator == "snips")
    assert own == plain
