"""Evaluate policies on logged decisions: propensities and predicted losses found on the way."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from etips.data.decisions import Floats
from etips.data.splitting import assign_folds
from etips.data.trajectories import Trajectories
from etips.evaluation.assessment import assess
from etips.evaluation.improvement import safe_improvement
from etips.evaluation.intervals import DEFAULT, Interval
from etips.evaluation.log import PROPENSITY_FLOOR, Log, view
from etips.evaluation.sensitivity import bound_risk
from etips.learn.fitting.candidates import Candidate
from etips.learn.fitting.driver import drive
from etips.learn.fitting.prepare import Prepared, choose_device, prepare
from etips.learn.fitting.stages import ENCODER, Training
from etips.learn.learners.catalogue import find_method
from etips.learn.learners.learner import Learner
from etips.learn.nuisance.outcome import fit_outcome
from etips.learn.nuisance.outcome_models import SklearnOutcome
from etips.learn.nuisance.propensity import fit_propensity
from etips.models.encoders.registry import AnyEncoder, as_encoder
from etips.policies.policy import FittedPolicy
from etips.results.assembly import make_exhibits
from etips.results.exhibits import Record
from etips.results.results import MethodResult, Results
from etips.results.summaries import summarize_data, summarize_method
from etips.results.translation_path import path_of


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

    encoder: AnyEncoder = ENCODER
    training: Training = field(default_factory=Training)
    outcome: bool | SklearnOutcome = True
    clip: float = PROPENSITY_FLOOR
    seed: int = 0


def evaluate(
    policies: Policy | Mapping[str, Policy],
    data: Trajectories,
    *,
    estimators: Sequence[str] = (),
    interval: Interval = DEFAULT,
    models: Models | None = None,
    paths: Mapping[str, Sequence[Candidate]] | None = None,
    settings: Mapping[str, object] = {},
    cohort: Record | None = None,
) -> Results:
    """Estimate the risk of one or more policies on logged decisions that none of them learnt from.

    Propensities are those in the data; else those of the first policy that fitted some; else they
    are cross-fitted on `data`, by stay. Predicted losses are always cross-fitted on `data`.

    Args:
        policies: One policy, or several by name; a report is about the first.
        data: Logged stays.
        estimators: Names, the headline first; all if left out.
        interval: How limits are made.
        models: How to fit what is missing.
        paths: Candidates of each policy as in `make_exhibits`; those the policies hold if left out.
        settings: What else the study was run with, for the record; JSON-ready. Settings of a
            policy, by its name, may say its `method`.
        cohort: `funnel.json` of the cohort the data came from.
    """
    started = time.perf_counter()
    models = models or Models()
    named = policies if isinstance(policies, Mapping) else {_name(policies): policies}
    log, notes = _log(list(named.values()), data, models)
    chances = {
        name: np.asarray(policy.predict_proba(data), np.float64) for name, policy in named.items()
    }
    methods = assess_policies(
        chances,
        log,
        data,
        notes=notes,
        learned_by=_methods_on_record(settings),
        estimators=estimators,
        interval=interval,
    )
    exhibits = make_exhibits(
        data,
        log,
        chances,
        headline=next(iter(named)),
        paths={n: path_of(p) for n, p in named.items()} if paths is None else paths,
        settings={**_record(models, estimators, interval), **settings},
        cohort=cohort,
        propensities=_stated(list(named.values()), data),
    )
    return Results(summarize_data(data), methods, time.perf_counter() - started, exhibits)


def assess_policies(
    named: Mapping[str, Floats],
    log: Log,
    data: Trajectories,
    *,
    notes: Mapping[str, str] = {},
    learned_by: Mapping[str, str] = {},
    estimators: Sequence[str] = (),
    interval: Interval = DEFAULT,
) -> tuple[MethodResult, ...]:
    """What the log says of policies whose probabilities are known, all of them judged together.

    Args:
        named: Probabilities of each policy, shape (n_decisions, n_actions), by name.
        log: The decisions of `data`.
        data: For the truth, where it is known.
        notes: Where propensities and predicted losses came from.
        learned_by: Method of each policy that is not called by it.
        estimators: Names, the headline first; all if left out.
        interval: How limits are made.
    """
    assessments = {
        name: assess(log, probabilities, estimators=estimators, interval=interval)
        for name, probabilities in named.items()
    }
    # Holm: each policy tried makes a lucky one likelier.
    improvements = safe_improvement({name: own.gain for name, own in assessments.items()})
    with_gain = summarize_data(data).mean_loss is not None
    return tuple(
        summarize_method(
            name,
            assessments[name],
            sensitivity=bound_risk(log, view(log, probabilities), interval=interval),
            improvement=improvement,
            truth=None if data.truth is None else data.true_risk(probabilities),
            notes=notes,
            method=find_method(learned_by.get(name, name)),
            with_gain=with_gain,
        )
        for (name, probabilities), improvement in zip(named.items(), improvements, strict=True)
    )


def _methods_on_record(settings: Mapping[str, object]) -> dict[str, str]:
    """Of each policy whose settings say what it was learned by; `etips evaluate` knows them."""
    return {
        name: str(own["method"])
        for name, own in settings.items()
        if isinstance(own, Mapping) and "method" in own
    }


def _name(policy: Policy) -> str:
    return type(policy).__name__


def _log(
    policies: Sequence[Policy], data: Trajectories, models: Models
) -> tuple[Log, Mapping[str, str]]:
    propensities = None
    prepared = None
    if data.propensity is not None:
        source = "known, from the data"
    else:
        fitted = next((own for p in policies if (own := _fitted(p)) is not None), None)
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
            propensities = np.exp(drive(networks).log_probabilities)
            source = "cross-fitted on the evaluated stays"
    predicted = _predicted(data, models, prepared)
    log = Log.of(data, propensities=propensities, predicted=predicted, floor=models.clip)
    model = "cross-fitted on the evaluated stays" if models.outcome else "none"
    return log, {
        "propensities": source,
        "predicted losses": model,
        "clip": f"{log.propensity_floor:g}",
    }


def _predicted(data: Trajectories, models: Models, prepared: Prepared | None) -> Floats | None:
    """Cross-fitted loss of every action at every decision, or None if nobody wants it."""
    if isinstance(models.outcome, SklearnOutcome):
        fold = assign_folds(data, n_folds=max(models.training.n_folds, 2), seed=models.seed)
        return models.outcome.cross_fit(data, fold)
    if not models.outcome:
        return None
    settings = models.training.with_seed(models.seed).outcome
    networks = fit_outcome(
        prepared or _prepare(data, models), as_encoder(models.encoder), settings, seed=models.seed
    )
    return drive(networks).expected


def _prepare(data: Trajectories, models: Models) -> Prepared:
    training = models.training
    return prepare(
        data,
        n_folds=max(training.n_folds, 2),
        seed=models.seed,
        device=choose_device(training.device),
    )


def _fitted(policy: Policy) -> FittedPolicy | None:
    """The policy as it was fitted, where propensities were fitted with it."""
    own = policy.fitted_policy() if isinstance(policy, Learner) else policy
    return own if isinstance(own, FittedPolicy) and own.propensity is not None else None


def _stated(policies: Sequence[Policy], data: Trajectories) -> Floats | None:
    """Fitted propensities of all actions, to be looked at where the estimates use known ones."""
    if data.propensity is None:
        return None
    fitted = next((own for p in policies if (own := _fitted(p)) is not None), None)
    return None if fitted is None else fitted.propensities(data)


def _record(models: Models, estimators: Sequence[str], interval: Interval) -> dict[str, object]:
    name = getattr(interval, "__name__", type(interval).__name__)
    return {
        "evaluation seed": models.seed,
        "evaluation folds": models.training.n_folds,
        "propensities raised to at least": models.clip,
        "estimators": list(estimators) or "all",
        "interval": name,
    }
