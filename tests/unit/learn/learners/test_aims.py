"""What sets of networks minimise: side by side as alone, and each where its reason is known."""

import math
from typing import get_args

import pytest
import torch
from small_worlds import CLINIC, training

from etips.learn.fitting.trainer import Trainer
from etips.learn.learners.policy_objectives import _TERMS, Aim, Form, Ground, Logged, aims_objective
from etips.learn.nuisance.fitted_nuisances import fit_nuisances
from etips.learn.training.objectives import combine, part_of
from etips.models.encoders.gru import GRU

AIMS = [
    Aim("translated", 0.3),
    Aim("translated", 0.6),
    Aim("log-sum-exp", strength=0.5),
    Aim("smoothed gains", 0.5, 1.0),
    Aim("doubly robust"),
    Aim("beta-IPS"),
    Aim("pessimistic", 0.5, 2.0),
    Aim("logarithmic smoothing", strength=0.3),
    Aim("exponential smoothing", strength=0.5),
    Aim("weighted likelihood"),
]


@pytest.fixture(scope="module")
def base():
    data = CLINIC.log(40, seed=0)
    return fit_nuisances(data, Trainer(), encoder=GRU(6), training=training(), seed=0, support=0.0)


def risks(objective, outputs, seen):
    return combine(objective, objective(outputs, seen).mean(-1))


def test_every_form_is_among_them():
    assert {aim.form for aim in AIMS} == set(get_args(Form)) == set(_TERMS)


@pytest.mark.parametrize("kl", [0.0, 0.3])
def test_every_aim_is_minimised_side_by_side_as_alone(base, kl):
    seen, n_folds = torch.from_numpy(base.prepared.seen), base.prepared.folds.n_networks
    generator = torch.Generator().manual_seed(0)
    size = (len(AIMS) * n_folds, len(seen), base.prepared.data.n_actions)
    outputs = torch.randn(size, generator=generator)
    expected = torch.rand(size[1:], generator=generator).numpy()
    together = aims_objective(base, AIMS, kl=kl, expected=expected)
    found = risks(together, outputs, seen)
    for number, aim in enumerate(AIMS):
        own = slice(number * n_folds, (number + 1) * n_folds)
        alone = aims_objective(base, [aim], kl=kl, expected=expected)
        wanted = risks(alone, outputs[own], seen)
        torch.testing.assert_close(found[own], wanted, atol=1e-5, rtol=1e-5)
        part = part_of(together, slice(own.start + 1, own.stop))
        torch.testing.assert_close(risks(part, outputs[own][1:], seen), wanted[1:])
        weight = part.weigh(outputs[own][1:], seen)
        torch.testing.assert_close(weight, alone.weigh(outputs[own], seen)[1:])


def learned(form, log, strength=math.nan, translation=math.nan, steps=800):
    """Probabilities of the actions in the one context of a log, once the aim is at its least."""
    action, loss, propensity = (torch.tensor(column) for column in zip(*log, strict=True))
    logged = Logged(action, loss.double(), propensity.double().log())
    column = (torch.full((1, 1), value, dtype=torch.float64) for value in (translation, strength))
    terms = _TERMS[form](Ground(*column, float(loss.max()), len(log), None))
    logits = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([logits], lr=0.05)
    for _ in range(steps):
        optimiser.zero_grad()
        value = terms.risk(logits.expand(1, len(log), 3), logged, None, slice(None)).mean(-1)
        risk = value if terms.pool is None else terms.pool.combine(value, slice(None))
        risk.sum().backward()
        optimiser.step()
    return logits.detach().softmax(-1).tolist()


LUCKY = [(0, 0.2, 0.6)] * 60 + [(1, 0.5, 0.39)] * 39 + [(2, 0.0, 0.002)]
"""Action 0 is good, 1 is not, and of 2 one decision is known, which went well by chance."""


def test_one_lucky_decision_wins_the_plain_risk_and_not_those_that_fear_its_weight():
    assert learned("translated", LUCKY, translation=0.5)[2] > 0.9
    for form, strength in (
        ("logarithmic smoothing", 1.0),
        ("log-sum-exp", 1.0),
        ("exponential smoothing", 0.2),
        ("pessimistic", 3.0),
    ):
        assert learned(form, LUCKY, strength, 0.5)[0] > 0.6, form
    assert learned("smoothed gains", LUCKY, 3.0, 0.5)[0] > 0.6


def test_the_weighted_likelihood_shares_out_where_it_should_decide():
    """Its known fault: actions become as likely as they gain, although the first is the best."""
    log = [(0, 0.2, 0.6)] * 60 + [(1, 0.5, 0.3)] * 30 + [(2, 1.0, 0.1)] * 10
    assert learned("weighted likelihood", log)[:2] == pytest.approx(
        [0.8 / 1.3, 0.5 / 1.3], abs=0.01
    )
    assert learned("translated", log, translation=0.5)[0] > 0.9


def test_the_baseline_does_not_flee_a_log_whose_losses_are_all_high():
    """Without translation every logged action is worth fleeing, the seldom logged least."""
    log = [(0, 0.8, 0.7)] * 70 + [(1, 0.95, 0.2)] * 20 + [(2, 1.0, 0.1)] * 10
    uneven = log[:40] + log[70:]  # by chance action 0 came up less often than it should
    assert learned("translated", uneven, translation=0.0)[0] > 0.9
    log = [(0, 0.8, 0.35)] * 70 + [(1, 0.95, 0.2)] * 20 + [(2, 1.0, 0.1)] * 10
    assert learned("translated", log, translation=0.0)[0] < 0.1  # it came up twice as often
    assert learned("beta-IPS", log)[0] > 0.9


def test_a_harm_is_feared_in_full_however_heavy_its_weight():
    log = [(0, 0.5, 0.6)] * 60 + [(1, 0.4, 0.38)] * 38 + [(2, 0.0, 0.02), (2, 1.0, 0.02)]
    smooth = learned("smoothed gains", log, 5.0, 0.5)
    assert smooth[2] < 0.05
    assert smooth[1] > 0.9
