"""What policy networks minimise."""

import numpy as np
import pytest
import torch
from small_worlds import CLINIC, small, training

from etips.errors import SettingError
from etips.learn import DoublyRobust
from etips.learn.fitting.trainer import Trainer
from etips.learn.learners.policy_objectives import policy_objective
from etips.learn.nuisance.fitted_nuisances import fit_nuisances
from etips.models.encoders.gru import GRU


@pytest.fixture(scope="module")
def base():
    data = CLINIC.log(40, seed=0)
    return fit_nuisances(data, Trainer(), encoder=GRU(6), training=training(), seed=0, support=0.3)


def asked(base):
    """Logits of two networks at every decision, and the rows that answer them."""
    seen = torch.from_numpy(base.prepared.seen)
    generator = torch.Generator().manual_seed(0)
    return torch.randn(2, len(seen), base.prepared.data.n_actions, generator=generator), seen


def test_a_risk_is_told_what_was_logged_and_of_which_networks(base):
    data, told = base.prepared.data, []

    def risk(logits, logged, seen, these):
        told.append((logits, logged, seen, these))
        return torch.zeros(logits.shape[:2])

    outputs, seen = asked(base)
    assert not policy_objective(base, risk, kl=0.0)(outputs, seen).any()
    ((logits, logged, rows, these),) = told
    assert logged.action.tolist() == data.logged_action.tolist()
    assert logged.loss.numpy() == pytest.approx(data.logged_loss)
    assert logged.log_propensity.numpy() == pytest.approx(np.log(base.chance), abs=1e-6)
    assert torch.equal(rows, seen)
    assert these == slice(None)
    policy = logits.softmax(-1).numpy()
    assert (~base.allowed).any()
    some = base.allowed.any(axis=1)
    assert (policy[:, some][:, ~base.allowed[some]] == 0).all()


def test_the_pull_is_towards_the_propensities_among_the_actions_with_support(base):
    outputs, seen = asked(base)
    found = policy_objective(base, lambda logits, *_: torch.zeros(logits.shape[:2]), kl=0.5)
    masked = np.where(base.allowed, outputs.double().numpy(), -np.inf)
    some = base.allowed.any(axis=1)
    policy = np.exp(masked[:, some] - masked[:, some].max(-1, keepdims=True))
    policy /= policy.sum(-1, keepdims=True)
    gap = np.log(np.maximum(policy, 1e-300)) - base.propensity.log_probabilities[some]
    wanted = 0.5 * (policy * gap).sum(-1)
    assert found(outputs, seen).numpy()[:, some] == pytest.approx(wanted, abs=1e-4)


def test_a_weight_is_the_policy_within_support_over_the_clipped_propensity(base):
    outputs, seen = asked(base)
    found = policy_objective(base, lambda logits, *_: logits[..., 0], kl=0.0)
    logged = base.prepared.data.logged_action
    above = base.allowed[np.arange(len(logged)), logged]
    weight = found.weigh(outputs, seen).numpy()
    assert (weight[:, ~above & base.allowed.any(axis=1)] == 0).all()
    assert (weight[:, above] > 0).all()


def test_a_folder_is_no_run(tmp_path):
    with pytest.raises(SettingError, match=r"^run: must be a run in use\. Use with Run"):
        DoublyRobust(**small()).fit(CLINIC.log(20, seed=0), run=str(tmp_path))
