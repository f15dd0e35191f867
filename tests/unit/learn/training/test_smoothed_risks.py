"""Risks that fear heavy weights: by hand, in their limits, and at the edge of what floats hold."""

import math

import pytest
import torch

from etips.learn.training.objectives import translated_ips, weigh
from etips.learn.training.smoothed_risks import (
    LEAST_MEAN,
    baseline_risk,
    baseline_terms,
    bound_terms,
    exponentially_smoothed,
    log_smoothed,
    log_sum_exp,
    log_sum_exp_terms,
    upper_bound,
    weighted_likelihood,
)

MOST = 1.0  # the largest loss


def draw(seed=0, n=40, dtype=torch.float64):
    """Two networks, n decisions, five actions."""
    g = torch.Generator().manual_seed(seed)
    logits = torch.randn(2, n, 5, generator=g, dtype=torch.float64).to(dtype)
    action = torch.randint(0, 5, (n,), generator=g)
    loss = torch.rand(n, generator=g, dtype=torch.float64).to(dtype)
    log_propensity = (0.1 + 0.9 * torch.rand(n, generator=g, dtype=torch.float64)).log().to(dtype)
    return logits, action, loss, log_propensity


def plain(problem, translation=MOST):
    """Translated risk of each network."""
    shift = torch.full((2, 1), translation, dtype=problem[0].dtype)
    return translated_ips(*problem, shift).mean(1)


def column(value, like):
    return torch.full((2, 1), value, dtype=like.dtype)


RISKS = {
    "log_smoothed": lambda x, a, d, p: log_smoothed(weigh(x, a, p), 0.5 - d, column(0.7, x)).mean(
        1
    ),
    "exponentially_smoothed": lambda x, a, d, p: exponentially_smoothed(
        x, a, MOST - d, p, column(0.6, x)
    ).mean(1),
    "weighted_likelihood": lambda x, a, d, p: weighted_likelihood(x, a, MOST - d, p).mean(1),
    "log_sum_exp": lambda x, a, d, p: log_sum_exp(
        log_sum_exp_terms(weigh(x, a, p), MOST - d, column(0.8, x)).mean(-1), column(0.8, x)[:, 0]
    ),
    "upper_bound": lambda x, a, d, p: upper_bound(
        bound_terms(weigh(x, a, p), d, column(0.4, x)).mean(-1), column(0.3, x)[:, 0]
    ),
}


@pytest.mark.parametrize("name", sorted(RISKS))
def test_every_gradient_is_the_gradient(name):
    logits, *logged = draw(n=6)
    check = torch.autograd.gradcheck
    assert check(lambda x: RISKS[name](x, *logged), (logits.requires_grad_(),))


@pytest.mark.parametrize("name", [*sorted(RISKS), "baseline"])
@pytest.mark.parametrize("exponent", [20, 60, 80])
def test_a_tiny_propensity_gives_neither_nan_nor_infinity(name, exponent):
    logits, action, loss, log_propensity = draw(dtype=torch.float32)
    log_propensity.fill_(-exponent * math.log(10))
    logits.requires_grad_()
    if name == "baseline":
        weight = weigh(logits, action, log_propensity)
        risk = baseline_risk(baseline_terms(logits, action, loss, weight).mean(-1))
    else:
        risk = RISKS[name](logits, action, loss, log_propensity)
    (gradient,) = torch.autograd.grad(risk.sum(), logits)
    assert risk.isfinite().all()
    assert gradient.isfinite().all()


def test_log_smoothing_by_hand_and_without_strength_it_is_the_plain_risk():
    weight = torch.tensor([[3.0, 3.0]], dtype=torch.float64)
    gain = torch.tensor([1.0, -1.0], dtype=torch.float64)
    found = log_smoothed(weight, gain, torch.tensor([[2.0]], dtype=torch.float64))
    assert found[0].tolist() == pytest.approx([-math.log(7) / 2, 3.0])  # the harm counts in full
    problem = draw()
    logits, action, loss, log_propensity = problem
    weight = weigh(logits, action, log_propensity)
    for strength, error in ((0.0, 1e-12), (1e-6, 1e-4)):
        found = log_smoothed(weight, MOST - loss, column(strength, logits)).mean(1)
        torch.testing.assert_close(found, plain(problem), atol=error, rtol=0)


def test_exponential_smoothing_with_power_one_is_the_plain_risk():
    problem = draw()
    logits, action, loss, log_propensity = problem
    found = exponentially_smoothed(logits, action, MOST - loss, log_propensity, column(1, logits))
    torch.testing.assert_close(found.mean(1), plain(problem))
    flat = exponentially_smoothed(logits, action, MOST - loss, log_propensity, column(0, logits))
    chosen = logits.softmax(-1).gather(-1, action[None, :, None].expand(2, -1, 1)).squeeze(-1)
    torch.testing.assert_close(flat, -(MOST - loss) * chosen)


def test_log_sum_exp_goes_to_the_plain_risk_and_never_promises_more():
    problem = draw()
    logits, action, loss, log_propensity = problem
    weight, gaps = weigh(logits, action, log_propensity), []
    for strength in (1.0, 0.1, 1e-3, 1e-5):
        terms = log_sum_exp_terms(weight, MOST - loss, column(strength, logits))
        found = log_sum_exp(terms.mean(-1), column(strength, logits)[:, 0])
        gaps.append(float((found - plain(problem)).abs().max()))
        assert (found >= plain(problem) - 1e-9).all()  # a risk: no lower than the plain one
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1e-4


def test_the_baseline_is_where_gradients_are_shortest_on_the_whole():
    logits, action, loss, log_propensity = draw()
    logits.requires_grad_()
    weight = weigh(logits, action, log_propensity)
    (slopes,) = torch.autograd.grad(weight.sum(), logits)
    length = slopes.square().sum(-1)  # of each decision's gradient, before its loss
    candidates = torch.linspace(0, 1, 100_001, dtype=torch.float64)[:, None]
    for network in range(2):
        totals = (length[network] * (loss - candidates).square()).sum(1)
        best = float(candidates[totals.argmin(), 0])
        means = baseline_terms(logits, action, loss, weight).mean(-1).detach()
        assert float(means[2, network] / means[3, network]) == pytest.approx(best, abs=1e-5)


def test_the_risk_with_a_baseline_is_translated_by_it_and_the_baseline_stands_still():
    logits, action, loss, log_propensity = draw()
    logits.requires_grad_()
    weight = weigh(logits, action, log_propensity)
    means = baseline_terms(logits, action, loss, weight).mean(-1)
    baseline = (means[2] / means[3]).detach()
    own = torch.autograd.grad(baseline_risk(means).sum(), logits, retain_graph=True)[0]
    shifted = ((loss - baseline[:, None]) * weigh(logits, action, log_propensity)).mean(1)
    torch.testing.assert_close(baseline_risk(means), shifted + baseline)
    torch.testing.assert_close(own, torch.autograd.grad(shifted.sum(), logits)[0])


def test_the_weighted_likelihood_is_least_where_actions_are_as_likely_as_they_gain():
    """In one context that the log has every action of, taken as often as its propensity says."""
    times, gain = torch.tensor([1, 2, 5]), torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64)
    action = torch.repeat_interleave(torch.arange(3), times)
    likely = (times / times.sum()).double().log()[action]
    logits = gain.log().expand(1, len(action), 3).clone().requires_grad_()
    value = weighted_likelihood(logits, action, gain[action], likely).mean()
    (slope,) = torch.autograd.grad(value, logits)
    assert slope.sum(1).abs().max() < 1e-12


def test_an_upper_bound_of_no_width_is_the_translated_risk_and_grows_with_the_weights():
    problem = draw()
    logits, action, loss, log_propensity = problem
    terms = bound_terms(weigh(logits, action, log_propensity), loss, column(0.4, logits))
    none, some = (upper_bound(terms.mean(-1), column(w, logits)[:, 0]) for w in (0.0, 0.5))
    torch.testing.assert_close(none, plain(problem, 0.4))
    root = weigh(logits, action, log_propensity).square().mean(1).sqrt()
    torch.testing.assert_close(some - none, 0.5 * root)


@pytest.mark.parametrize(
    ("n_terms", "combine"),
    [
        (1, lambda means: log_sum_exp(means, torch.ones(3))),
        (4, baseline_risk),
        (2, lambda means: upper_bound(means, torch.ones(3))),
    ],
)
def test_where_nothing_counts_nothing_is_learned(n_terms, combine):
    means = torch.zeros(n_terms, 3, requires_grad=True)
    (gradient,) = torch.autograd.grad(combine(means).sum(), means)
    assert gradient.isfinite().all()
    assert LEAST_MEAN > 0
