"""D2: what answers hang on, whatever was learned."""

from dataclasses import replace

import numpy as np
import pytest
from fitted_learners import (
    arrays,
    every_learner,
    every_network,
    fitted,
    fitted_as_is,
    floored,
    log,
)
from small_worlds import LEARNERS

import etips


@every_learner
@pytest.mark.parametrize("lag", [0, 1])
def test_a_stay_is_answered_alike_in_any_company_and_order(name, lag):
    data, learner = log(lag), fitted(name, lag)
    whole, stay = learner.predict_proba(data), data.decisions().stay
    order = np.random.default_rng(0).permutation(data.n_stays)[:17]
    rows = np.concatenate([np.flatnonzero(stay == number) for number in order])
    found = learner.predict_proba(data.subset(order))
    assert found == pytest.approx(whole[rows], abs=1e-5)


@every_learner
@pytest.mark.parametrize("lag", [0, 1])
def test_d2_later_steps_do_not_change_earlier_answers(name, lag):
    """D2: features, actions and losses after a decision are nothing to it."""
    data, learner = log(lag), fitted_as_is(name, lag)
    cut = 2  # answers at steps before this are held against those of altered stays
    place = np.arange(data.n_steps) - np.repeat(data.offsets[:-1], np.diff(data.offsets))
    later = place >= cut + 1 - lag
    noise = np.random.default_rng(1).normal(size=data.sequence.shape).astype(np.float32)
    altered = replace(
        data,
        sequence=np.where(later[:, None], 30 * noise, data.sequence),
        action=np.where(later & (data.action >= 0), (data.action + 1) % 3, data.action),
        loss=np.where(later, 1 - data.loss, data.loss),
    )
    early = data.decisions().step <= cut
    assert early.any()
    assert not early.all()
    before, after = learner.predict_proba(data), learner.predict_proba(altered)
    assert before[early].tobytes() == after[early].tobytes()


@every_network
def test_a_network_does_read_the_history(name):
    """Else the test above would prove nothing."""
    data = log()
    noise = np.random.default_rng(2).normal(size=data.sequence.shape).astype(np.float32)
    policy = fitted_as_is(name).policy_
    found = [policy.propensities(replace(data, sequence=s)) for s in (data.sequence, 3 * noise)]
    assert np.abs(found[0] - found[1]).max() > 1e-3


@floored
def test_an_action_without_support_is_never_recommended(name):
    learner, data = fitted(name, support=0.33), log()
    allowed = learner.policy_.propensities(data) >= 0.33
    assert not allowed.all()
    found, abstained = learner.predict_proba(data), learner.abstains(data)
    assert (found[~allowed & ~abstained[:, None]] == 0).all()
    action = learner.predict(data)
    assert allowed[np.arange(len(action)), action][~abstained].all()


@floored
def test_where_nothing_has_support_the_propensities_answer(name):
    learner, data = fitted(name, support=0.99), log()
    assert learner.abstains(data).all() or learner.policy_.kind == "imitation"
    assert (learner.predict_proba(data) == learner.policy_.propensities(data)).all()


@every_learner
def test_a_learner_says_where_it_abstains(name):
    found = fitted(name).abstains(log())
    assert found.shape == (log().n_decisions,)
    assert found.dtype == bool


@every_learner
def test_questions_are_answered_up_to_the_step_after_the_last(name):
    asked = log().without_log()
    found = fitted(name).predict_proba(asked)
    assert found.shape == (log().n_steps, 3)  # with lag 1 one question a step: what next?
    stay, step = asked.decisions()
    of_question = {pair: row for row, pair in enumerate(zip(stay, step, strict=True))}
    logged = [of_question[pair] for pair in zip(*log().decisions(), strict=True)]
    assert fitted(name).predict_proba(log()) == pytest.approx(found[logged], abs=1e-5)


@every_learner
def test_arrays_do_as_well_as_trajectories_and_are_not_changed(name):
    features, action, loss = arrays()
    share = np.full(60, 1 / 3)
    given = (features, action, loss, share)
    copies = [values.copy() for values in given]
    learner = LEARNERS[name]().fit(features, action, loss, propensity=share)
    found = learner.predict_proba(features)
    assert found.shape == (60, 3)
    for values, kept in zip(given, copies, strict=True):
        assert values.tobytes() == kept.tobytes()
        values.flags.writeable = False
    again = LEARNERS[name]().fit(features, action, loss, propensity=share)  # from read-only memory
    assert again.predict_proba(features).tobytes() == found.tobytes()
    whole = etips.from_arrays(features, action, loss, propensity=share)
    assert LEARNERS[name]().fit(whole).predict_proba(whole).tobytes() == found.tobytes()


@every_learner
def test_padded_arrays_with_lengths_are_stays(name):
    rng = np.random.default_rng(4)
    features, lengths = rng.normal(size=(30, 4, 3)), rng.integers(1, 5, 30)
    action, loss = rng.integers(0, 3, (30, 4)), rng.integers(0, 2, (30, 4)).astype(float)
    more = {"lengths": lengths, "static": rng.normal(size=(30, 2)), "groups": np.arange(30) // 2}
    learner = LEARNERS[name]()
    learner.fit(features, action, loss, propensity=np.full((30, 4), 1 / 3), **more)
    found = learner.predict_proba(features, **more)
    assert found.shape == (lengths.sum(), 3)
    padding = np.arange(4) >= lengths[:, None]
    other = np.where(padding[..., None], 99.0, features)
    assert learner.predict_proba(other, **more).tobytes() == found.tobytes()


@every_learner
def test_trajectories_beside_arrays_are_refused(name):
    with pytest.raises(etips.SettingError, match="Trajectories alone"):
        LEARNERS[name]().fit(log(), [0], [1.0])
