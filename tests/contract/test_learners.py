"""H5, F1: what every learner keeps to, whatever it learns."""

import math
from dataclasses import is_dataclass

import numpy as np
import pytest
import torch
from fitted_learners import (
    every_learner,
    every_network,
    fitted,
    log,
    settings_of,
)
from small_worlds import CLINIC, LEARNERS, NETWORKS

import etips


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
        assert (at.matching_factor is not None) == (at.stage == "policy")


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
