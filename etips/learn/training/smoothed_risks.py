"""Risks that fear heavy weights: smoothed, bounded or with a baseline; shapes as in `objectives`.

Published ones count what an action gains, which is never negative. A loss becomes a gain by taking
it off the largest one: `gain = most - loss`. All are minimised, so that gains come with a minus.
"""

import torch
from torch import Tensor

from etips.learn.training.objectives import log_chosen, ratio_of

LEAST_MEAN = 1e-12
"""Means are at least this before a logarithm or a quotient: a batch in which nothing counts for a
network has means of zero, and must not move it."""

HEAVIEST = 1e15
"""Weights are at most this before they are squared, so that float32 can hold the square."""

FEWEST = -60.0
"""Exponents are at least this: e to it is nothing beside 1, and has a slope of nothing."""


def log_smoothed(weight: Tensor, gain: Tensor, strength: Tensor) -> Tensor:
    """Minus the smoothed gain, log(1 + strength weight gain) / strength, shape (J, n).

    Sakhi, Aouali, Alquier and Chopin, "Logarithmic Smoothing for Pessimistic Off-Policy Evaluation,
    Selection and Learning", NeurIPS 2024. A gain below zero, which they do not have, is a harm and
    counts in full: smoothing it would forgive what should be feared. Strength 0 is the plain risk.

    Args:
        weight: Policy over propensity, shape (J, n).
        gain: Of the logged action, shape (n,) or (J, n).
        strength: Shape (J, 1), not negative.
    """
    product = weight * gain
    some = strength > 0
    safe = torch.where(some, strength, torch.ones_like(strength))
    smooth = torch.log1p(safe * product.clamp_min(0)) / safe
    return -torch.where(some & (product > 0), smooth, product)


def exponentially_smoothed(
    logits: Tensor, action: Tensor, gain: Tensor, log_propensity: Tensor, power: Tensor
) -> Tensor:
    """Minus the gain times policy / propensity ** power, shape (J, n).

    Aouali, Brunel, Rohde and Korba, "Exponential Smoothing for Off-Policy Learning", ICML 2023.
    Power 1 is the plain risk, 0 ignores the propensities.

    Args:
        logits: Shape (J, n, K).
        action: Shape (n,).
        gain: Shape (n,).
        log_propensity: Shape (n,).
        power: Between 0 and 1, shape (J, 1).
    """
    return -gain * ratio_of(log_chosen(logits, action) - power * log_propensity)


def weighted_likelihood(
    logits: Tensor, action: Tensor, gain: Tensor, log_propensity: Tensor
) -> Tensor:
    """Minus the log-probability of the logged action, times gain over propensity, shape (J, n).

    Aouali and Sakhi, "Off-Policy Learning in Large Action Spaces: Optimization Matters More Than
    Estimation", arXiv 2509.03456: a concave stand-in for the weighted gain.

    Args:
        logits: Shape (J, n, K).
        action: Shape (n,).
        gain: Not negative, shape (n,).
        log_propensity: Shape (n,).
    """
    return -gain * ratio_of(-log_propensity) * log_chosen(logits, action)


def log_sum_exp_terms(weight: Tensor, gain: Tensor, strength: Tensor) -> Tensor:
    """What `log_sum_exp` needs the mean of, shape (1, J, n): see there."""
    return torch.exp((-strength * weight * gain).clamp_min(FEWEST))[None]


def log_sum_exp(means: Tensor, strength: Tensor) -> Tensor:
    """Minus the log-sum-exp gain, log(mean exp(-strength weight gain)) / strength, shape (J,).

    Behnamnia et al., "Log-Sum-Exponential Estimator for Off-Policy Evaluation and Learning", ICML
    2025, arXiv 2506.06873, whose lambda is minus our strength. Towards 0 it is the plain risk.

    Args:
        means: Of the term, shape (1, J).
        strength: Above 0, shape (J,).
    """
    risk: Tensor = means[0].clamp_min(LEAST_MEAN).log() / strength
    return risk


def baseline_terms(logits: Tensor, action: Tensor, loss: Tensor, weight: Tensor) -> Tensor:
    """What `baseline_risk` needs the means of, shape (4, J, n): see there.

    Args:
        logits: Shape (J, n, K).
        action: Shape (n,).
        loss: Shape (n,).
        weight: Policy over propensity, shape (J, n).
    """
    policy = logits.detach().softmax(-1)
    own = policy.gather(-1, action[:, None].expand(len(policy), -1, 1)).squeeze(-1)
    steep = _square(weight.detach()) * (policy.square().sum(-1) + 1 - 2 * own)
    return torch.stack([weight * loss, weight, steep * loss, steep])


def baseline_risk(means: Tensor) -> Tensor:
    """Risk with the baseline at which its gradient varies least from log to log, shape (J,).

    Gupta, Jeunen, Oosterhuis and de Rijke, "Optimal Baseline Corrections for Off-Policy Contextual
    Bandits", RecSys 2024, arXiv 2405.05736: the baseline is a mean of losses, weighted by the
    squared length of each decision's gradient, here that of its logits: the squared weight times
    |action - policy|^2. It takes the place of a translation, and moves as the policy does.

    Args:
        means: Of the terms, shape (4, J).
    """
    weighted, factor, above, below = means
    baseline = (above / below.clamp_min(LEAST_MEAN)).detach()
    risk: Tensor = weighted - baseline * factor + baseline
    return risk


def bound_terms(weight: Tensor, loss: Tensor, translation: Tensor) -> Tensor:
    """What `upper_bound` needs the means of, shape (2, J, n): see there."""
    value = weight * (loss - translation)
    return torch.stack([value, _square(weight)])


def upper_bound(means: Tensor, width: Tensor) -> Tensor:
    """Translated risk plus `width` standard errors of the weights, shape (J,).

    Jin, Ren, Yang and Wang, "Policy learning 'without' overlap: Pessimism and generalized empirical
    Bernstein's inequality", arXiv 2212.09900: a policy is judged by a bound that grows with its own
    weights, so that actions nobody took cannot look good by luck.

    Args:
        means: Of the terms, shape (2, J).
        width: Of the bound over the root of the number of decisions, shape (J,).
    """
    return means[0] + width * means[1].clamp_min(LEAST_MEAN).sqrt()


def _square(weight: Tensor) -> Tensor:
    return weight.clamp_max(HEAVIEST).square()
