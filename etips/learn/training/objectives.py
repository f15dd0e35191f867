"""What is minimised: functions of tensors, one value a network and decision.

Ratios of probabilities are differences of logarithms, so that a tiny propensity gives a large
number and not a NaN. Shapes: J networks, n decisions, K actions.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional

STEEPEST = 40.0
"""Ratios of probabilities are exact up to e to this power; beyond it they go on along the tangent,
so that neither a ratio nor its gradient overflows in float32, however small the propensity."""

LEAST = -80.0
"""Logarithm of a probability that counts as none. Actions that are forbidden have one far lower,
and a CPU takes ten times as long to find that an exponential is no number above zero."""


class Objective(Protocol):
    """What training minimises; where networks differ in it, it is `Sliced` or `Weighted`."""

    def __call__(self, outputs: Tensor, seen: Tensor) -> Tensor:
        """Value of each decision, shape (J, n).

        Args:
            outputs: Of the networks, shape (J, n, K).
            seen: Row of each decision's last visible step, shape (n,), to look up what was logged.
        """


OfNetworks = Callable[[Tensor, Tensor, slice], Tensor]
"""Like an objective, with values that may differ from network to network: the slice says which
networks of the whole bundle the outputs are of."""


@dataclass(frozen=True, eq=False)
class Sliced:
    """An objective that may differ from network to network.

    Args:
        value: What is minimised.
        these: Which networks of the whole bundle it is for.
    """

    value: OfNetworks
    these: slice = field(default_factory=lambda: slice(None))

    def __call__(self, outputs: Tensor, seen: Tensor) -> Tensor:
        """Value of each decision, shape (J, n)."""
        return self.value(outputs, seen, self.these)


@dataclass(frozen=True)
class Pool:
    """How means over decisions become a risk that is no mean itself.

    Args:
        n_terms: Values of a decision whose means are needed, C.
        combine: The risk of some networks, shape (J,), from the means of their terms, (C, J).
    """

    n_terms: int
    combine: Callable[[Tensor, slice], Tensor]


@dataclass(frozen=True, eq=False)
class Weighted:
    """The objective of policies, with the weights that it rests on.

    Args:
        value: What is minimised; with a pool the terms of each decision, shape (C, J, n).
        weight: Policy probability over propensity; its mean is the matching factor.
        these: Which networks of the whole bundle it is for.
        pool: How the terms become a risk; None where the risk is the mean of the value.
    """

    value: OfNetworks
    weight: OfNetworks
    these: slice = field(default_factory=lambda: slice(None))
    pool: Pool | None = None

    def __call__(self, outputs: Tensor, seen: Tensor) -> Tensor:
        """Value of each decision, shape (J, n), or its terms, (C, J, n)."""
        return self.value(outputs, seen, self.these)

    def weigh(self, outputs: Tensor, seen: Tensor) -> Tensor:
        """Weight of each decision, shape (J, n)."""
        return self.weight(outputs, seen, self.these)


def part_of(objective: Objective, these: slice) -> Objective:
    """The objective of some networks of a bundle, or of some of those it is already confined to."""
    if not isinstance(objective, Sliced | Weighted):
        return objective
    chosen = range(*objective.these.indices(sys.maxsize))[these]
    return replace(objective, these=slice(chosen.start, chosen.stop, chosen.step))


def pool_of(objective: Objective) -> Pool | None:
    """How the terms of an objective become a risk; None where it has but one, which is the risk."""
    return objective.pool if isinstance(objective, Weighted) else None


def combine(objective: Objective, means: Tensor) -> Tensor:
    """The risk of each network, shape (J,), from the means of what `objective` says.

    Args:
        objective: What is minimised.
        means: Over decisions, shape (J,), or (C, J) of an objective with a pool.
    """
    if not isinstance(objective, Weighted) or objective.pool is None:
        return means
    return objective.pool.combine(means, objective.these)


def cross_entropy(logits: Tensor, action: Tensor) -> Tensor:
    """Minus the log-probability of the logged action, shape (J, n).

    Args:
        logits: Shape (J, n, K).
        action: Shape (n,).
    """
    return -log_chosen(logits, action)


def translated_ips(
    logits: Tensor, action: Tensor, loss: Tensor, log_propensity: Tensor, translation: Tensor
) -> Tensor:
    """Translated inverse propensity risk of a softmax policy, paper eq. (5), shape (J, n).

    Args:
        logits: Shape (J, n, K).
        action: Shape (n,).
        loss: Shape (n,).
        log_propensity: Logarithm of the logged action's propensity, shape (n,).
        translation: Subtracted from the loss, shape (J, 1).
    """
    return (loss - translation) * weigh(logits, action, log_propensity)


def weigh(logits: Tensor, action: Tensor, log_propensity: Tensor) -> Tensor:
    """Weight of the logged action: policy probability over propensity, shape (J, n).

    Args:
        logits: Shape (J, n, K).
        action: Shape (n,).
        log_propensity: Shape (n,).
    """
    return ratio_of(log_chosen(logits, action) - log_propensity)


def chosen(logits: Tensor, action: Tensor) -> Tensor:
    """Probability of the logged action in float64, shape (J, n); see `cross_entropy`."""
    return _gather(logits.double().softmax(-1), action)


def doubly_robust(
    logits: Tensor, action: Tensor, loss: Tensor, log_propensity: Tensor, expected: Tensor
) -> Tensor:
    """Doubly robust risk of a softmax policy, shape (J, n).

    Args:
        logits: As in `translated_ips`, like all that was logged.
        action: Shape (n,).
        loss: Shape (n,).
        log_propensity: Shape (n,).
        expected: Predicted loss of every action, shape (n, K).
    """
    log_policy = logits.log_softmax(dim=-1)
    chosen = _gather(log_policy, action)
    residual = loss - expected.gather(1, action[:, None]).squeeze(1)
    return (_exp(log_policy) * expected).sum(-1) + ratio_of(chosen - log_propensity) * residual


def bernoulli(outputs: Tensor, action: Tensor, loss: Tensor) -> Tensor:
    """Cross-entropy of a loss in [0, 1] with its prediction for the logged action, shape (J, n).

    Args:
        outputs: Logit of the predicted loss of every action, shape (J, n, K).
        action: Shape (n,).
        loss: Shape (n,).
    """
    chosen = _gather(outputs, action)
    return functional.binary_cross_entropy_with_logits(
        chosen, loss.expand_as(chosen), reduction="none"
    )


def squared(outputs: Tensor, action: Tensor, loss: Tensor) -> Tensor:
    """Squared error of the predicted loss of the logged action, shape (J, n)."""
    return (_gather(outputs, action) - loss).square()


def kl_divergence(logits: Tensor, log_propensities: Tensor) -> Tensor:
    """Kullback-Leibler divergence of the policy from the propensities, shape (J, n).

    Args:
        logits: Shape (J, n, K).
        log_propensities: Of every action, shape (n, K).
    """
    divergence: Tensor = _Divergence.apply(logits, log_propensities)  # type: ignore[no-untyped-call]
    return divergence


class _Divergence(torch.autograd.Function):
    """With its gradient written out."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, log_propensities: Tensor) -> Tensor:  # noqa: ANN401
        apart = logits.log_softmax(-1)
        policy = _exp(apart)
        divergence = (policy * apart.sub_(log_propensities)).sum(-1)
        ctx.save_for_backward(policy, apart, divergence)
        return divergence

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:  # noqa: ANN401
        policy, apart, divergence = ctx.saved_tensors
        return (apart - divergence[..., None]).mul_(policy).mul_(grad[..., None]), None


def _exp(log_policy: Tensor) -> Tensor:
    """Probabilities from their logarithms, none below e to `LEAST`."""
    return log_policy.clamp_min(LEAST).exp()


def ratio_of(log_ratio: Tensor) -> Tensor:
    """The ratio whose logarithm is given."""
    within = log_ratio.clamp_max(STEEPEST)
    return within.exp() * (1 + log_ratio - within)


def log_chosen(logits: Tensor, action: Tensor) -> Tensor:
    """Log-probability of the logged action, shape (J, n); see `cross_entropy`."""
    return _gather(logits.log_softmax(dim=-1), action)


def _gather(values: Tensor, action: Tensor) -> Tensor:
    return values.gather(-1, action[:, None].expand(len(values), -1, 1)).squeeze(-1)
