"""The read-out of RETAIN adds up to what the network says."""

import numpy as np
import pytest
from small_worlds import small, training, ward

import etips
from etips.learn import DirectMethod, EtIPS, PredictiveModel
from etips.models.answers import outputs_at
from etips.models.batches import step_tensors
from etips.models.encoders.retain import RETAIN
from etips.policies.attention import read_attention


@pytest.fixture(scope="module")
def policy():
    told = small(encoder=RETAIN(5), training=training(calibrate=False))
    return PredictiveModel(**told).fit(ward(lag=0)).fitted_policy()


def outputs(policy, data):
    """Mean output of the networks at each decision, shape (n, K)."""
    steps = step_tensors(policy.scaler.transform(data), earlier_actions=False)
    (batch,) = steps.batches(np.arange(data.n_stays), data.n_stays)
    said = outputs_at(policy.propensity, batch, steps).mean(0).detach().numpy()
    place = np.zeros(data.n_steps, np.int64)
    place[data.seen_rows] = np.arange(data.n_decisions)
    result = np.zeros_like(said)
    result[place[batch.seen.numpy()]] = said
    return result


@pytest.mark.parametrize("action", [None, 1])
def test_contributions_add_up_to_the_output(policy, action):
    data = ward(lag=0)
    given = None if action is None else np.full(data.n_decisions, action)
    found = read_attention(policy, data, given)
    wanted = outputs(policy, data)[np.arange(data.n_decisions), found.action]
    assert found.total == pytest.approx(wanted, abs=1e-4)
    assert np.abs(found.contribution).max() > 0.01
    assert found.visit.sum(axis=1) == pytest.approx(np.ones(data.n_decisions))


def test_steps_stand_in_the_order_of_time_and_later_ones_are_blank(policy):
    data = ward(lag=0)
    found = read_attention(policy, data)
    step = data.decisions().step
    blank = np.arange(found.visit.shape[1]) > step[:, None]
    assert (found.visit[blank] == 0).all()
    assert (found.visit[~blank] > 0).all()
    assert (found.contribution[blank] == 0).all()
    first = step == 0
    assert found.visit[first, 0] == pytest.approx(np.ones(first.sum()))


def test_a_learner_with_it_is_saved_and_opened(tmp_path):
    learner = EtIPS(**small(encoder="retain", translations=(0.5,))).fit(ward())
    learner.save(tmp_path / "policy")
    again = etips.load(tmp_path / "policy")
    assert (again.predict_proba(ward()) == learner.predict_proba(ward())).all()


def test_other_policies_are_refused_in_a_line(policy):
    other = DirectMethod(**small()).fit(ward(lag=0)).fitted_policy()
    with pytest.raises(etips.SettingError, match=r"^policy: must have networks with the encoder"):
        read_attention(other, ward(lag=0))
    with pytest.raises(etips.DataError, match=r"^action: must have one entry a decision"):
        read_attention(policy, ward(lag=0), np.zeros(2, np.int64))
