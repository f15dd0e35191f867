"""What policy networks minimise: a risk within support, and a KL divergence from the clinicians."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from etips.data.decisions import Floats
from etips.learn.nuisance.fitted_nuisances import FittedNuisances
from etips.learn.training import smoothed_risks
from etips.learn.training.objectives import (
    Pool,
    Weighted,
    doubly_robust,
    kl_divergence,
    translated_ips,
    weigh,
)
from etips.models.network import forbid


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


Form = Literal[
    "translated",
    "doubly robust",
    "beta-IPS",
    "log-sum-exp",
    "logarithmic smoothing",
    "exponential smoothing",
    "weighted likelihood",
    "pessimistic",
]
"""A formula that policies are trained by."""


@dataclass(frozen=True)
class Variant:
    """One of the policies that a learner trains and chooses from: one set of networks, one a fold.

    Args:
        form: The formula, the same for all that one learner trains.
        translation: Taken off the loss; NaN where the form has none, or finds its own.
        strength: How much the form smooths or fears; NaN where it has no such number.
    """

    form: Form = "translated"
    translation: float = math.nan
    strength: float = math.nan


class Terms(NamedTuple):
    """What a form makes of networks.

    Args:
        risk: Its value of each decision, or terms of it.
        pool: How the terms become a risk; None where it is the mean of the value.
    """

    risk: Risk
    pool: Pool | None = None


class FormInputs(NamedTuple):
    """What the networks of a form learn from, one entry or row a network.

    Args:
        translation: Shape (J, 1).
        strength: Shape (J, 1).
        most: Largest logged loss.
        n_decisions: That one network learns from, about.
        expected: Predicted losses by row, shape (n_steps, n_actions); None without predictions.
    """

    translation: Tensor
    strength: Tensor
    most: float
    n_decisions: float
    expected: Tensor | None


def form_objective(
    base: FittedNuisances,
    variants: Sequence[Variant],
    *,
    kl: float,
    expected: Floats | None = None,
) -> Weighted:
    """What sets of networks minimise, one variant a set.

    Args:
        base: What they stand on.
        variants: One a set.
        kl: Weight of the KL divergence from the propensities.
        expected: Predicted loss of every action, out of fold, shape (n_decisions, n_actions);
            needed where the form is doubly robust.
    """
    prepared, n_folds = base.prepared, base.prepared.folds.n_networks
    device = prepared.steps.device

    def column(values: Sequence[float]) -> Tensor:
        return torch.tensor(np.repeat(np.asarray(values, np.float32), n_folds)).to(device)[:, None]

    inputs = FormInputs(
        column([variant.translation for variant in variants]),
        column([variant.strength for variant in variants]),
        float(prepared.data.logged_loss.max()),
        prepared.data.n_decisions * max(n_folds - 1, 1) / n_folds,
        None if expected is None else prepared.by_row(expected.astype(np.float32)),
    )
    risk, pool = FORMS[variants[0].form](inputs)
    return policy_objective(base, risk, kl=kl, pool=pool)


def _translated(inputs: FormInputs) -> Terms:
    def risk(logits: Tensor, logged: Logged, _: Tensor, these: slice) -> Tensor:
        return translated_ips(logits, *logged, inputs.translation[these])

    return Terms(risk)


def _log_smoothing(inputs: FormInputs) -> Terms:
    def risk(logits: Tensor, logged: Logged, _: Tensor, these: slice) -> Tensor:
        weight = weigh(logits, logged.action, logged.log_propensity)
        gain = inputs.most - logged.loss
        return smoothed_risks.log_smoothed(weight, gain, inputs.strength[these])

    return Terms(risk)


def _doubly_robust(inputs: FormInputs) -> Terms:
    expected = inputs.expected
    assert expected is not None

    def risk(logits: Tensor, logged: Logged, seen: Tensor, _: slice) -> Tensor:
        return doubly_robust(logits, *logged, expected[seen])

    return Terms(risk)


def _beta_ips(_: FormInputs) -> Terms:
    def risk(logits: Tensor, logged: Logged, _: Tensor, __: slice) -> Tensor:
        weight = weigh(logits, logged.action, logged.log_propensity)
        return smoothed_risks.baseline_terms(logits, logged.action, logged.loss, weight)

    return Terms(risk, Pool(4, lambda means, _: smoothed_risks.baseline_risk(means)))


def _log_sum_exp(inputs: FormInputs) -> Terms:
    def risk(logits: Tensor, logged: Logged, _: Tensor, these: slice) -> Tensor:
        weight = weigh(logits, logged.action, logged.log_propensity)
        gain = inputs.most - logged.loss
        return smoothed_risks.log_sum_exp_terms(weight, gain, inputs.strength[these])

    def combine(means: Tensor, these: slice) -> Tensor:
        return smoothed_risks.log_sum_exp(means, inputs.strength[these, 0])

    return Terms(risk, Pool(1, combine))


def _exponential_smoothing(inputs: FormInputs) -> Terms:
    def risk(logits: Tensor, logged: Logged, _: Tensor, these: slice) -> Tensor:
        action, loss, log_propensity = logged
        return smoothed_risks.exponentially_smoothed(
            logits, action, inputs.most - loss, log_propensity, inputs.strength[these]
        )

    return Terms(risk)


def _weighted_likelihood(inputs: FormInputs) -> Terms:
    def risk(logits: Tensor, logged: Logged, _: Tensor, __: slice) -> Tensor:
        action, loss, log_propensity = logged
        return smoothed_risks.weighted_likelihood(
            logits, action, inputs.most - loss, log_propensity
        )

    return Terms(risk)


def _pessimistic(inputs: FormInputs) -> Terms:
    def risk(logits: Tensor, logged: Logged, _: Tensor, these: slice) -> Tensor:
        weight = weigh(logits, logged.action, logged.log_propensity)
        return smoothed_risks.bound_terms(weight, logged.loss, inputs.translation[these])

    def combine(means: Tensor, these: slice) -> Tensor:
        width = inputs.strength[these, 0] / math.sqrt(inputs.n_decisions)
        return smoothed_risks.upper_bound(means, width)

    return Terms(risk, Pool(2, combine))


FORMS: Mapping[Form, Callable[[FormInputs], Terms]] = {
    "translated": _translated,
    "doubly robust": _doubly_robust,
    "beta-IPS": _beta_ips,
    "log-sum-exp": _log_sum_exp,
    "logarithmic smoothing": _log_smoothing,
    "exponential smoothing": _exponential_smoothing,
    "weighted likelihood": _weighted_likelihood,
    "pessimistic": _pessimistic,
}
