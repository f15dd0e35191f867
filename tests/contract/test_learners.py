"""H5, F1, F6, D2: what every learner keeps to, whatever it learns."""

import copy
import math
from dataclasses import fields, is_dataclass, replace
from functools import cache

import numpy as np
import pytest
import torch
from small_worlds import CLINIC, LEARNERS, NETWORKS, training, ward

import etips
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.errors import EtipsError, FileError
from etips.policies.policy import FittedPolicy

every_learner = pytest.mark.parametrize("name", LEARNERS)
every_network = pytest.mark.parametrize("name", NETWORKS)
floored = pytest.mark.parametrize("name", [n for n in NETWORKS if n != "PredictiveModel"])


@cache
def log(lag=1):
    return ward(lag=lag)


@cache
def fitted(name, lag=1, **settings):
    """A learner that nobody changes, fitted once."""
    return LEARNERS[name](**settings).fit(log(lag))


def fitted_as_is(name, lag=1):
    """The same with networks as they were trained: shrunk, those of a log of noise say nothing."""
    more = {"training": training(calibrate=False)} if name in NETWORKS else {}
    return fitted(name, lag, **more)


def arrays():
    """A small trial: 60 rows, three arms, losses 0 and 1."""
    rng = np.random.default_rng(3)
    features = rng.normal(size=(60, 3))
    action = np.tile([0, 1, 2], 20)
    loss = (rng.random(60) < 0.5).astype(float)
    return features, action, loss


def attempt(act):
    """What came of it: a result, or a refusal that is one line; anything else is a failure."""
    try:
        return act()
    except EtipsError as refusal:
        if "\n" in str(refusal) or len(str(refusal)) < 10:
            pytest.fail(f"not one clear line: {refusal}")
        return refusal


def settings_of(learner):
    values = {f.name: getattr(learner, f.name) for f in fields(learner)}
    return copy.deepcopy({k: vars(v) if hasattr(v, "__dict__") else v for k, v in values.items()})


@every_learner
def test_fit_returns_the_learner_and_leaves_its_settings(name):
    learner = LEARNERS[name]()
    before = settings_of(learner) if is_dataclass(learner) else dict(vars(learner))
    assert learner.fit(log()) is learner
    after = settings_of(learner) if is_dataclass(learner) else vars(learner)
    assert {key: after[key] for key in before} == before


@every_learner
def test_what_is_learned_ends_in_an_underscore(name):
    learner = LEARNERS[name]()
    given = set(vars(learner))
    learner.fit(log())
    assert all(new.endswith("_") for new in set(vars(learner)) - given)


@every_learner
@pytest.mark.parametrize("lag", [0, 1])
def test_probabilities_have_a_row_a_decision_and_sum_to_one(name, lag):
    found = fitted(name, lag).predict_proba(log(lag))
    assert found.shape == (log(lag).n_decisions, 3)
    assert found.dtype == np.float64
    assert (found >= 0).all()
    assert found.sum(axis=1) == pytest.approx(1, abs=1e-9)


@every_learner
def test_a_recommendation_is_the_likeliest_action_unless_it_draws(name):
    action = fitted(name).predict(log())
    probabilities = fitted(name).predict_proba(log())
    assert action.shape == (log().n_decisions,)
    if fitted(name).fitted_policy().acts == "likeliest":
        assert (action == probabilities.argmax(axis=1)).all()
    assert (probabilities[np.arange(len(action)), action] > 0).all()


@every_learner
def test_a_learner_not_fitted_is_refused_in_one_line(name, tmp_path):
    learner = LEARNERS[name]()
    for act in (learner.predict_proba, learner.predict, learner.abstains):
        with pytest.raises(etips.SettingError, match="fitted") as refusal:
            act(log())
        assert "\n" not in str(refusal.value)
    with pytest.raises(etips.SettingError, match="fitted"):
        learner.save(tmp_path / "policy")
    assert not (tmp_path / "policy").exists()


@every_learner
def test_f1_the_same_seed_gives_the_same_bytes(name, tmp_path):
    """F1: on one machine with one set of versions."""
    for number in range(2):
        learner = LEARNERS[name](seed=5).fit(log())
        learner.save(tmp_path / f"{number}")
        np.save(tmp_path / f"{number}.npy", learner.predict_proba(log()))
    for file in (path.name for path in (tmp_path / "0").iterdir()):
        assert (tmp_path / "0" / file).read_bytes() == (tmp_path / "1" / file).read_bytes()
    assert (tmp_path / "0.npy").read_bytes() == (tmp_path / "1.npy").read_bytes()


@every_network
def test_another_seed_gives_another_policy(name, tmp_path):
    for seed in (5, 6):
        LEARNERS[name](seed=seed).fit(log()).save(tmp_path / f"{seed}")
    first, second = (tmp_path / f"{s}" / "weights.safetensors" for s in (5, 6))
    assert first.read_bytes() != second.read_bytes()


@every_learner
def test_the_global_generators_end_as_they_began(name):
    numpy_before, torch_before = np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    LEARNERS[name]().fit(log()).predict_proba(log())
    numpy_after = np.random.get_state()  # noqa: NPY002
    assert (numpy_after[1] == numpy_before[1]).all()
    assert numpy_after[2] == numpy_before[2]
    assert torch.equal(torch.get_rng_state(), torch_before)


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
def test_a_saved_policy_answers_as_before(name, tmp_path):
    learner = fitted(name)
    learner.save(tmp_path / "policy")
    loaded = etips.load(tmp_path / "policy")
    assert isinstance(loaded, FittedPolicy)
    assert loaded.predict_proba(log()).tobytes() == learner.predict_proba(log()).tobytes()
    assert (loaded.abstains(log()) == learner.abstains(log())).all()
    with pytest.raises(FileError, match="exists already"):
        learner.save(tmp_path / "policy")
    learner.save(tmp_path / "policy", overwrite=True)


@every_learner
def test_a_saved_policy_takes_arrays_as_the_learner_does(name, tmp_path):
    features, action, loss = arrays()
    learner = LEARNERS[name]().fit(features, action, loss, propensity=np.full(60, 1 / 3))
    learner.save(tmp_path / "policy")
    loaded = etips.load(tmp_path / "policy")
    assert loaded.predict_proba(features).tobytes() == learner.predict_proba(features).tobytes()
    assert (loaded.predict(features) == learner.predict(features)).all()
    assert (loaded.abstains(features) == learner.abstains(features)).all()
    both = np.stack([features, features + 1], axis=1)
    found = loaded.predict(both, lengths=np.ones(60, int))
    assert (found == learner.predict(features)).all()


@every_learner
def test_f6_a_changed_byte_of_a_saved_policy_is_refused_by_file(name, tmp_path):
    """F6: one flip in the middle and one at the end of every file."""
    folder = tmp_path / "policy"
    fitted(name).save(folder)
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        for place in (len(whole) // 2, len(whole) - 2):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            with pytest.raises(FileError, match=path.name):
                etips.load(folder)
        path.write_bytes(whole)
    etips.load(folder)


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


def one_stay():
    return log().subset([1])


def two_stays():
    return log().subset([1, 4])


def one_action():
    data = log()
    schema = replace(data.schema, n_actions=1)
    return replace(data, action=np.where(data.action >= 0, 0, -1), schema=schema)


def flat_feature():
    data = log()
    sequence = np.array(data.sequence)
    sequence[:, 3] = 7.0
    return replace(data, sequence=sequence)


def no_features():
    schema = Schema(sequence=(), n_actions=3, lag=0)
    return Trajectories(
        sequence=np.zeros((30, 0), np.float32),
        offsets=np.arange(31),
        schema=schema,
        action=np.tile([0, 1, 2], 10),
        loss=np.tile([0.0, 1.0], 15),
        propensity=np.full(30, 1 / 3),
    )


def no_decisions():
    data = log()
    return replace(data, loss=np.full(data.n_steps, np.nan), propensity=None)


def no_log():
    return log().without_log()


def an_action_nobody_took():
    data = log()
    return replace(data, schema=replace(data.schema, n_actions=4))


def losses_all_alike():
    data = log()
    return replace(data, loss=np.where(np.isnan(data.loss), np.nan, 1.0))


def losses_in_hundreds():
    data = log()
    return replace(data, loss=300 + 100 * data.loss)


def losses_beyond_float32():
    data = log()
    return replace(data, loss=1e300 * data.loss)


CORNERS = {
    make.__name__: make
    for make in (
        one_stay,
        two_stays,
        one_action,
        flat_feature,
        no_features,
        no_decisions,
        no_log,
        an_action_nobody_took,
        losses_all_alike,
        losses_in_hundreds,
        losses_beyond_float32,
    )
}
REFUSED = {"one_stay", "no_decisions", "no_log", "losses_beyond_float32"}
"""Corners that learners of networks refuse; they must learn from all others."""


@every_learner
@pytest.mark.parametrize("corner", CORNERS)
def test_a_corner_case_is_learned_from_or_refused_in_one_line(name, corner):
    data = CORNERS[corner]()
    found = attempt(lambda: LEARNERS[name]().fit(data).predict_proba(data))
    if name in NETWORKS:
        assert isinstance(found, EtipsError) == (corner in REFUSED)
    if not isinstance(found, EtipsError):
        assert found.shape == (data.n_decisions, data.n_actions)
        assert (found >= 0).all()
        assert found.sum(axis=1) == pytest.approx(1)


@every_learner
def test_data_without_a_decision_get_an_empty_answer(name):
    assert fitted(name).predict_proba(no_decisions()).shape == (0, 3)
    assert fitted(name).predict(no_decisions()).shape == (0,)


def renamed():
    data = log()
    return replace(data, schema=replace(data.schema, sequence=("hr", "map", "lactate", "other")))


def without_static():
    data = log()
    schema = replace(data.schema, static=())
    return replace(data, schema=schema, static=np.zeros((data.n_stays, 0), np.float32))


def other_lag():
    return log().with_lag(0)


@every_network
@pytest.mark.parametrize("other", [renamed, without_static, other_lag, an_action_nobody_took])
def test_data_of_another_schema_are_refused(name, other):
    with pytest.raises(etips.DataError, match=r"^data, (sequence|static|lag|n_actions): is "):
        fitted(name).predict_proba(other())


@pytest.mark.parametrize("name", ["RandomPolicy", "MostFrequent"])
def test_data_with_another_number_of_actions_are_refused_by_simple_policies(name):
    with pytest.raises(etips.DataError, match=r"^data: must have the 3 actions"):
        fitted(name).predict_proba(an_action_nobody_took())


@pytest.mark.parametrize("name", ["TIPS", "IPS"])
def test_known_propensities_that_are_not_there_are_missed_before_training(name):
    data, epochs = replace(log(), propensity=None), []
    with pytest.raises(etips.DataError, match=r"^propensity: is not in the data"):
        LEARNERS[name]().fit(data, report=epochs.append)
    assert epochs == []


@every_network
def test_a_report_is_told_of_every_epoch(name):
    told = []
    LEARNERS[name]().fit(log(), report=told.append)
    assert len(told) >= 2
    assert all(1 <= at.epoch <= at.epochs for at in told)
    stages = {at.stage for at in told}
    assert "propensity" in stages
    for at in told:
        assert math.isfinite(at.loss)
        assert math.isfinite(at.held_out)
        assert at.seconds_left >= 0
        assert (at.matching_factor is not None) == (at.stage in ("policy", "pilot"))


@pytest.mark.parametrize("name", [*NETWORKS, "RandomPolicy"])
@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_out_of_range_is_refused(name, seed):
    with pytest.raises(etips.SettingError, match=r"^seed: must be in 0\.\."):
        LEARNERS[name](seed=seed).fit(log())


@every_network
def test_a_coded_sequence_is_as_good_as_a_plain_one(name):
    coded = CLINIC.log(40, seed=0)
    plain = coded.with_features(coded.sequence[:], coded.static)
    found = [LEARNERS[name]().fit(data).predict_proba(plain) for data in (coded, plain)]
    assert found[0] == pytest.approx(found[1], abs=1e-4)
