"""Evaluate policies on logged decisions: propensities and predicted losses found on the way."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from torch import nn

from etips.data.decisions import Floats
from etips.data.splitting import assign_folds
from etips.data.trajectories import Trajectories
from etips.evaluation.assessment import assess
from etips.evaluation.improvement import safe_improvement
from etips.evaluation.intervals import DEFAULT, Interval
from etips.evaluation.log import Log, view
from etips.evaluation.results import MethodResult, Results
from etips.evaluation.sensitivity import bound_risk
from etips.learn.foundation import Training, as_encoder, fit_outcome
from etips.learn.outcome import SklearnOutcome
from etips.learn.policy import FittedPolicy
from etips.learn.prepare import Prepared, choose_device, prepare
from etips.learn.propensity import fit_propensity
from etips.models.encoders import GRU, Encoder


class Policy(Protocol):
    """Anything that gives the probability of every action at every decision."""

    def predict_proba(self, data: Trajectories) -> Floats:
        """Shape (n_decisions, n_actions), in decision order."""


@dataclass(frozen=True)
class Models:
    """How propensities and predicted losses are found for an evaluation.

    Args:
        encoder: Of the networks fitted here.
        training: Of them; the folds are stays of the evaluated data.
        outcome: Predict losses, for the estimators that use them: True by our networks, or by a
            `SklearnOutcome`; False leaves those estimators out.
        clip: Propensities below this are raised to it.
        seed: Of the networks.
    """

    encoder: Encoder | nn.Module | type[nn.Module] = field(default_factory=GRU)
    training: Training = field(default_factory=Training)
    outcome: bool | SklearnOutcome = True
    clip: float = 0.01
    seed: int = 0


def evaluate(
    policies: Policy | Mapping[str, Policy],
    data: Trajectories,
    *,
    estimators: Sequence[str] = (),
    interval: Interval = DEFAULT,
    models: Models | None = None,
) -> Results:
    """Estimate the risk of one or more policies on logged decisions that none of them learnt from.

    Propensities are those in the data; else those of the first policy that fitted some; else they
    are cross-fitted on `data`, by stay. Predicted losses are always cross-fitted on `data`.

    Args:
        policies: One policy, or several by name.
        data: Logged stays.
        estimators: Names, the headline first; all if left out.
        interval: How limits are made.
        models: How to fit what is missing.
    """
    started = time.perf_counter()
    models = models or Models()
    named = policies if isinstance(policies, Mapping) else {_name(policies): policies}
    log, notes = _log(list(named.values()), data, models)
    methods = []
    for name, policy in named.items():
        probabilities = np.asarray(policy.predict_proba(data), np.float64)
        truth = None if data.truth is None else data.true_risk(probabilities)
        found = assess(log, probabilities, estimators=estimators, interval=interval)
        hidden = bound_risk(log, view(log, probabilities), interval=interval)
        methods.append(MethodResult(name, found, truth, hidden, notes=notes))
    gains = {method.name: method.assessment.gain for method in methods}
    together = safe_improvement(gains)  # Holm: each policy tried makes a lucky one likelier
    methods = [replace(m, improvement=i) for m, i in zip(methods, together, strict=True)]
    return Results(_describe(data), tuple(methods), time.perf_counter() - started)


def _name(policy: Policy) -> str:
    return type(policy).__name__


def _log(
    policies: Sequence[Policy], data: Trajectories, models: Models
) -> tuple[Log, Mapping[str, str]]:
    propensities = None
    prepared = None
    if data.propensity is not None:
        chance, source = data.logged_propensity, "known, from the data"
    else:
        fitted = next((found for p in policies if (found := _fitted(p)) is not None), None)
        if fitted is not None:
            propensities = fitted.propensities(data)
            source = "fitted with the policy, on its training stays"
        else:
            prepared = _prepare(data, models)
            networks = fit_propensity(
                prepared,
                as_encoder(models.encoder),
                models.training.with_seed(models.seed).propensity,
                seed=models.seed,
            )
            propensities = np.exp(networks.log_probabilities)
            source = "cross-fitted on the evaluated stays"
        chance = propensities[np.arange(data.n_decisions), data.logged_action]
    predicted = _predicted(data, models, prepared)
    floor = models.clip if propensities is not None else 0.0
    log = Log(
        loss=data.logged_loss,
        action=data.logged_action,
        propensity=np.maximum(chance, floor),
        cluster=_clusters(data),
        n_actions=data.n_actions,
        propensities=propensities,
        predicted=predicted,
        propensity_floor=floor,
    )
    model = "cross-fitted on the evaluated stays" if models.outcome else "none"
    return log, {"propensities": source, "predicted losses": model, "clip": f"{floor:g}"}


def _predicted(data: Trajectories, models: Models, prepared: Prepared | None) -> Floats | None:
    """Cross-fitted loss of every action at every decision, or None if nobody wants it."""
    if isinstance(models.outcome, SklearnOutcome):
        fold = assign_folds(data, n_folds=max(models.training.n_folds, 2), seed=models.seed)
        return models.outcome.cross_fit(data, fold)
    if not models.outcome:
        return None
    settings = models.training.with_seed(models.seed).outcome
    return fit_outcome(
        prepared or _prepare(data, models), as_encoder(models.encoder), settings, seed=models.seed
    )[1]


def _prepare(data: Trajectories, models: Models) -> Prepared:
    training = models.training
    return prepare(
        data,
        n_folds=max(training.n_folds, 2),
        seed=models.seed,
        device=choose_device(training.device),
    )


def _fitted(policy: Policy) -> FittedPolicy | None:
    found = policy if isinstance(policy, FittedPolicy) else getattr(policy, "policy_", None)
    if isinstance(found, FittedPolicy) and found.propensity is not None:
        return found
    return None


def _clusters(data: Trajectories) -> np.ndarray[tuple[int], np.dtype[np.generic]]:
    """The unit of evidence: the patient where the data names patients, else the stay."""
    labels = data.stay if data.group is None else data.group
    return np.unique(labels, return_inverse=True)[1][data.decisions().stay]


def _describe(data: Trajectories) -> dict[str, object]:
    return {
        "n_stays": data.n_stays,
        "n_steps": data.n_steps,
        "n_decisions": data.n_decisions,
        "n_actions": data.n_actions,
        "lag": data.lag,
        "mean_loss": float(data.logged_loss.mean()),
        "actions": list(data.schema.actions),
        "provenance": dict(data.schema.provenance),
    }
