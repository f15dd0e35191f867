"""Rules are evaluated like any learned policy."""

from dataclasses import replace

import numpy as np
import pytest

import etips
from etips.learn import RandomPolicy
from etips.learn.fitting.stages import Training
from etips.learn.training.settings import Settings
from etips.models.encoders.gru import GRU
from etips.results.evaluate import evaluate
from etips.results.evaluation_log import Models
from etips.worlds.clinic import Clinic

QUICK = Training(n_folds=2, **{s: Settings(epochs=2) for s in ("propensity", "outcome", "policy")})
SMALL = Models(encoder=GRU(4), training=QUICK)


@pytest.fixture(scope="module")
def log():
    return Clinic(decisions_per_stay=3).log(300, seed=0)


@pytest.fixture(scope="module")
def feature(log):
    return log.schema.sequence[0]


def test_a_rule_in_python_and_the_same_in_sql_have_the_same_results(log, feature):
    python = etips.Rule(lambda s: 1 if s[feature] > 0 else None, name="python")
    sql = etips.SqlRule("sql", f'case when "{feature}" > 0 then 1 end')
    found = evaluate([python, sql], log, models=SMALL)
    first, second = found.methods
    assert first.estimates == second.estimates
    assert first.gain.difference == second.gain.difference
    assert second.notes["rule"] == sql.text
    assert second.notes["evaluated stays"] == "nobody was learned from"
    assert sql.text in second.sentence
    answers = np.where(log.sequence[log.seen_rows][:, 0] > 0, 1, -1)
    left = np.where((answers == -1)[:, None], log.true_logging(), np.eye(5)[answers])
    assert second.truth == pytest.approx(log.true_risk(left))


def test_where_it_abstains_the_clinicians_decide_and_nothing_is_gained(log):
    (method,) = evaluate(lambda s: None, log, models=replace(SMALL, outcome=False)).methods
    assert method.name == "rule"
    assert method.gain.difference == 0
    assert method.estimates[0].risk == pytest.approx(log.logged_loss.mean())


def test_a_rule_stands_beside_learned_policies_over_whole_stays(log, feature):
    rule = etips.SqlRule("random", f'case when "{feature}" > 0 then 1 else 0 end')
    found = evaluate([rule, RandomPolicy().fit(log)], log, models=SMALL, horizon="stay")
    assert [method.name for method in found.methods] == ["random", "RandomPolicy"]
    assert all(method.whole_stay is not None for method in found.methods)
    assert found.methods[0].label is None  # it is called like a method, and is none
    assert found.exhibits.headline == "random"
