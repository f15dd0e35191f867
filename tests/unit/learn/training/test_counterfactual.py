"""Risks with a penalty on how they vary: by hand, against each other, and their gradients."""

import math

import pytest
import torch

from etips.learn.training.counterfactual import (
    norm_poem_risk,
    norm_poem_values,
    poem_risk,
    poem_values,
)

WEIGHT = torch.tensor([0.5, 2.0, 4.0, 1.5], dtype=torch.float64)
LOSS = torch.tensor([-1.0, 0.0, -0.5, -1.0], dtype=torch.float64)
FREE = {"cap": math.inf, "penalty": 0.0}
BOTH = [(poem_risk, poem_values), (norm_poem_risk, norm_poem_values)]


def test_without_cap_and_penalty_poem_is_ips_and_its_normal_form_snips():
    share = WEIGHT * LOSS
    assert poem_risk(WEIGHT, LOSS, **FREE).item() == pytest.approx(share.mean().item())
    ratio = (share.sum() / WEIGHT.sum()).item()
    assert norm_poem_risk(WEIGHT, LOSS, **FREE).item() == pytest.approx(ratio)


def test_the_penalty_is_on_the_standard_error():
    share = WEIGHT * LOSS
    error = (share.var(correction=0) / 4).sqrt()
    found = poem_risk(WEIGHT, LOSS, cap=math.inf, penalty=2.0)
    assert found.item() == pytest.approx((share.mean() + 2 * error).item())
    ratio = share.sum() / WEIGHT.sum()
    error = ((WEIGHT * (LOSS - ratio)).square().sum() / WEIGHT.sum() ** 2).sqrt()
    found = norm_poem_risk(WEIGHT, LOSS, cap=math.inf, penalty=2.0)
    assert found.item() == pytest.approx((ratio + 2 * error).item())


def test_weights_above_the_cap_count_as_it_and_have_no_slope():
    weight = WEIGHT.clone().requires_grad_()
    risk = poem_risk(weight, LOSS, cap=2.0, penalty=0.0)
    assert risk.item() == pytest.approx((WEIGHT.clamp_max(2.0) * LOSS).mean().item())
    (slope,) = torch.autograd.grad(risk, weight)
    assert slope[2] == 0
    assert slope[0] != 0


def test_a_shift_of_the_loss_shifts_the_normal_form_and_nothing_else():
    plain = norm_poem_risk(WEIGHT, LOSS, cap=3.0, penalty=1.0)
    assert norm_poem_risk(WEIGHT, LOSS + 7, cap=3.0, penalty=1.0).item() == pytest.approx(
        plain.item() + 7
    )


@pytest.mark.parametrize(("risk", "values"), BOTH, ids=["plain", "self-normalised"])
@pytest.mark.parametrize("penalty", [0.0, 1.5])
@pytest.mark.parametrize("cap", [3.0, math.inf])
def test_values_of_a_whole_log_have_the_mean_and_the_slope_of_the_risk(risk, values, penalty, cap):
    weight = WEIGHT.clone().requires_grad_()
    whole = risk(weight, LOSS, cap=cap, penalty=penalty)
    each = values(weight[None], LOSS, cap=cap, penalty=penalty, size=4)
    assert each.shape == (1, 4)
    assert each.mean().item() == pytest.approx(whole.item(), abs=1e-5)
    (wanted,) = torch.autograd.grad(whole, weight, retain_graph=True)
    (found,) = torch.autograd.grad(each.mean(), weight)
    exact = values is poem_values or penalty == 0
    assert torch.allclose(found, wanted, atol=1e-6 if exact else 0.15)
