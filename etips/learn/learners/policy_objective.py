"""What policy networks minimise: a risk within support, and a KL divergence from the clinicians."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from etips.learn.learners.fitted_nuisances import FittedNuisances
from etips.learn.training.objectives import Pool, Weighted, kl_divergence, weigh
from etips.models.masking import forbid


class Logged(NamedTuple):
    """What was logged at some decisions, each of shape (n,)."""

    action: Tensor
    loss: Tensor
    log_propensity: Tensor


Risk = Callable[[Tensor, Logged, Tensor, slice], Tensor]
"""Risk of logits (J, n, K) at what was logged, at rows (n,), of some networks; shape (J, n), or
(C, J, n) where a pool makes a risk of the means of C terms."""


def policy_objective(
    base: FittedNuisances, risk: Risk, *, kl: float, pool: Pool | None = None
) -> Weighted:
    """The objective of policies that keep to the actions with support.

    Args:
        base: What they stand on.
        risk: What they minimise.
        kl: Weight of the KL divergence from the propensities.
        pool: What makes a risk of its terms; None where it is their mean.
    """
    action, loss = base.prepared.action, base.prepared.loss
    allowed, log_chance = base.allowed_rows(), base.log_chance_rows()
    likely = base.log_propensity_rows() if kl else None

    def value(outputs: Tensor, seen: Tensor, these: slice) -> Tensor:
        logits = forbid(outputs, allowed[seen])
        logged = Logged(action[seen], loss[seen], log_chance[seen])
        values = risk(logits, logged, seen, these)
        if likely is None:
            return values
        apart = kl * kl_divergence(logits, likely[seen])
        return values + apart if pool is None else torch.cat([values, apart[None]])

    def weight(outputs: Tensor, seen: Tensor, _: slice) -> Tensor:
        logits = forbid(outputs, allowed[seen])
        return weigh(logits, action[seen], log_chance[seen])

    return Weighted(value, weight, pool=_with_mean(pool) if pool and kl else pool)


def _with_mean(pool: Pool) -> Pool:
    """The same risk with the mean of one more term added."""

    def combine(means: Tensor, these: slice) -> Tensor:
        return pool.combine(means[:-1], these) + means[-1]

    return Pool(pool.n_terms + 1, combine)
