"""What each form leads to where its reason is known."""

import math

import pytest
import torch

from etips.learn.learners.policy_objectives import FORMS, FormInputs, Logged


def learned(form, log, strength=math.nan, translation=math.nan, steps=800):
    """Probabilities of the actions in the one context of a log, once the aim is at its least."""
    action, loss, propensity = (torch.tensor(column) for column in zip(*log, strict=True))
    logged = Logged(action, loss.double(), propensity.double().log())
    column = (torch.full((1, 1), value, dtype=torch.float64) for value in (translation, strength))
    terms = FORMS[form](FormInputs(*column, float(loss.max()), len(log), None))
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
