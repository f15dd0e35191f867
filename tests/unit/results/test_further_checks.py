import json
from dataclasses import replace

import numpy as np
import pytest
from missing_worlds import make_missing

import etips
from etips.errors import DataError, SettingError
from etips.evaluation.censoring import complete_losses
from etips.files.json_documents import canonical
from etips.results.evaluate import find_control, summarize_missing
from etips.results.evaluation_log import Models
from etips.results.parsing import parse_results


class Fixed:
    def __init__(self, table):
        self.table = table

    def predict_proba(self, data):
        return self.table


def evaluate(world, data, **more):
    policy = {"rule": Fixed(world.policy)}
    models = Models(outcome=False)
    return etips.evaluate(policy, data, propensities=world.propensities, models=models, **more)


@pytest.fixture(scope="module")
def world():
    return make_missing(1_200, seed=0)


def test_missing_losses_are_told_and_bounded_where_they_are_weighted(world):
    results = evaluate(world, world.data)
    told, (method,) = results.data.missing_loss, results.methods
    assert told.treatment == "weight"
    assert told.n_taken == results.data.n_decisions == 1_200
    assert sum(own.n_missing for own in told.by_action) == told.n_missing
    head = method.estimates[0]
    assert head.low < world.risk < head.high
    assert method.missing_loss.bounds[-1].gamma is None
    assert method.missing_loss.bounds[-1].risk_low < world.risk
    assert method.missing_loss.bounds[-1].risk_high > world.risk
    assert all(0 <= bound.risk_low <= bound.risk_high <= 1 for bound in method.sensitivity.bounds)
    assert method.sensitivity.features[0].gamma > 1
    assert parse_results(json.loads(canonical(results.to_json()))) == results


def test_dropped_ones_are_told_too(world):
    seen = ~np.isnan(world.data.loss)
    part = replace(world, propensities=world.propensities[seen], policy=world.policy[seen])
    results = evaluate(part, replace(world.data, missing_loss="drop"))
    assert results.data.missing_loss.treatment == "drop"
    assert results.data.n_decisions == seen.sum()
    assert results.methods[0].missing_loss is None


def test_few_missing_losses_are_not_counted():
    world = make_missing(400, seed=1)
    loss = np.where(np.isnan(world.data.loss), 0.0, world.data.loss)
    loss[:4] = np.nan
    told = summarize_missing(replace(world.data, loss=loss), None)
    assert told.n_missing is None
    assert told.by_action == ()


def test_a_control_away_from_zero_makes_the_verdict_doubtful_and_says_why(world):
    whole = complete_losses(world.data)
    even = np.full_like(world.propensities, 1 / 3)
    trace = whole.sequence[:, 0] + np.random.default_rng(0).normal(size=1_200)
    wrong = replace(world, propensities=even, policy=np.tile([1.0, 0.0, 0.0], (1_200, 1)))
    (method,) = evaluate(wrong, whole, negative_control=trace).methods
    assert method.negative_control.warning
    assert method.verdict in ("doubtful", "unusable")
    assert method.negative_control.sentence in method.reasons
    (right,) = evaluate(world, whole, negative_control=trace).methods
    assert not right.negative_control.warning
    assert right.negative_control.sentence not in right.reasons


def test_a_control_is_the_data_s_own_a_feature_or_numbers(world):
    data = world.data
    assert find_control(data, None) is None
    held = replace(data, negative_control=np.arange(1_200.0))
    for given in (None, "negative_control"):
        own = find_control(held, given)
        assert (own.name, own.seen, own.values[7]) == ("negative_control", False, 7)
    feature = find_control(data, "SOFA")
    assert feature.seen
    np.testing.assert_allclose(feature.values, data.sequence[:, 1])
    with pytest.raises(SettingError, match=r"^negative_control: must be a column of the data"):
        find_control(data, "colour")
    with pytest.raises(DataError, match=r"^negative_control: must have one entry a decision"):
        find_control(data, np.zeros(3))
