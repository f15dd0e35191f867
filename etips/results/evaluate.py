"""Evaluate policies on logged decisions that none of them learned from."""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from types import FunctionType

import numpy as np

from etips.data.decisions import Floats
from etips.data.trajectories import Trajectories
from etips.evaluation.assessment import assess
from etips.evaluation.inference.improvement import safe_improvement
from etips.evaluation.inference.intervals import DEFAULT, Interval
from etips.evaluation.log import Log, view
from etips.evaluation.sensitivity import bound_risk
from etips.learn.fitting.candidates import Candidate
from etips.learn.learners.catalogue import find_method
from etips.results.assembly import make_exhibits
from etips.results.evaluation_log import Models, Policy, make_log
from etips.results.exhibits import Record
from etips.results.results import MethodResult, Results
from etips.results.summaries import summarize_data, summarize_method
from etips.results.translation_path import path_of


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
    """Estimate the risk of one or more policies on logged decisions that none of them learned from.

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
    named = policies if isinstance(policies, Mapping) else {type(policies).__name__: policies}
    made = make_log(list(named.values()), data, models)
    chances = {
        name: np.asarray(policy.predict_proba(data), np.float64) for name, policy in named.items()
    }
    learned_by = _methods_on_record(settings)
    assess_all = partial(assess_policies, estimators=estimators, interval=interval)
    methods = assess_all(chances, made.log, data, notes=made.notes, learned_by=learned_by)
    exhibits = make_exhibits(
        data,
        made.log,
        chances,
        headline=next(iter(named)),
        paths={n: path_of(p) for n, p in named.items()} if paths is None else paths,
        settings={**_record(models, estimators, interval), **settings},
        cohort=cohort,
        propensities=made.fitted,
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


def _record(models: Models, estimators: Sequence[str], interval: Interval) -> dict[str, object]:
    kind = interval if isinstance(interval, FunctionType) else type(interval)
    return {
        "evaluation seed": models.seed,
        "evaluation folds": models.training.n_folds,
        "propensities raised to at least": models.clip,
        "estimators": list(estimators) or "all",
        "interval": kind.__name__,
    }
