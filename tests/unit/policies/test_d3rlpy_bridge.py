"""Stays for d3rlpy, and its algorithms as policies; it is asked where it is installed."""

import sys
import warnings

import numpy as np
import pytest
from small_worlds import CLEAR, ward

import etips
from etips.policies.d3rlpy_bridge import D3rlpyPolicy, episodes_of, to_d3rlpy


class Sign:
    """An algorithm that looks at one column."""

    def predict(self, x):
        assert x.dtype == np.float32
        return (x[:, 0] > 0).astype(np.int64)


def test_decisions_are_steps_of_episodes_that_end_with_the_stay():
    data = ward()
    own = episodes_of(data)
    n = data.n_decisions
    assert own.observations.shape == (n, 4 * 3 + 1 + 2)
    assert own.actions[:, 0].tolist() == data.logged_action.tolist()
    assert own.rewards[:, 0] == pytest.approx(-data.logged_loss)
    stay = data.decisions().stay
    assert own.terminals.sum() == len(set(stay))
    assert own.observations.mean(axis=0) == pytest.approx(np.zeros(15), abs=1e-5)
    last = episodes_of(data, outcome="last")
    assert last.rewards[:, 0] == pytest.approx(np.where(own.terminals == 1, -data.logged_loss, 0))


def test_a_policy_is_evaluated_like_any_other():
    train, test = CLEAR.log(300, seed=0), CLEAR.log(200, seed=1)
    policy = D3rlpyPolicy(Sign(), train)
    found = policy.predict_proba(test)
    assert found.shape == (test.n_decisions, 3)
    assert (found.argmax(axis=1) == policy.predict(test)).all()
    results = etips.evaluate({"theirs": policy}, test)
    truth = test.true_risk(found)
    (method,) = (m for m in results.methods if m.name == "theirs")
    assert abs(method.estimates[0].risk - truth) < 4 * method.estimates[0].std_error


def test_other_stays_are_standardised_as_those_fitted_to():
    data = ward()
    policy, own = D3rlpyPolicy(Sign(), data), episodes_of(data)
    part = data.subset(slice(0, 5))
    wanted = Sign().predict(own.observations)[: part.n_decisions]
    assert (policy.predict(part) == wanted).all()


def test_refusals_are_one_line(monkeypatch):
    with pytest.raises(etips.DataError, match=r"^data, lag: is not as in the data"):
        D3rlpyPolicy(Sign(), ward()).predict(ward(lag=0))
    with pytest.raises(etips.DataError, match=r"^data: must hold at least one decision"):
        episodes_of(ward().without_log())
    monkeypatch.setitem(sys.modules, "d3rlpy", None)
    with pytest.raises(etips.SettingError, match=r"^to_d3rlpy: needs d3rlpy\. Install it"):
        to_d3rlpy(ward())


def test_a_double_dqn_learns_and_is_evaluated():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what it imports
        d3rlpy = pytest.importorskip("d3rlpy", reason='pip install "etips[rl]" to try it')
    train, test = CLEAR.log(400, seed=0), CLEAR.log(300, seed=1)
    algorithm = d3rlpy.algos.DoubleDQNConfig(batch_size=64, gamma=0.0).create(device=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        d3rlpy.seed(0)
        algorithm.fit(
            to_d3rlpy(train),
            n_steps=1500,
            n_steps_per_epoch=1500,
            show_progress=False,
            logger_adapter=d3rlpy.logging.NoopAdapterFactory(),
        )
    policy = D3rlpyPolicy(algorithm, train)
    gain = test.true_risk(test.true_logging()) - test.true_risk(policy.predict_proba(test))
    assert gain > 0.02
    assert etips.evaluate({"dqn": policy}, test).methods[0].estimates
