"""Evaluate policies on logged decisions that none of them learned from."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import FunctionType
from typing import Any, Literal, get_args

import numpy as np

from etips.data.decisions import Floats
from etips.data.trajectories import Trajectories
from etips.disclosure import are_few
from etips.errors import SettingError
from etips.evaluation.assessment import Assessment, assess
from etips.evaluation.estimators import find_estimators
from etips.evaluation.inference.estimate import Estimate
from etips.evaluation.inference.improvement import safe_improvement
from etips.evaluation.inference.intervals import DEFAULT, Interval
from etips.evaluation.log import Log, view
from etips.evaluation.sensitivity import bound_risk
from etips.learn.fitting.candidates import Candidate
from etips.learn.learners.catalogue import find_method
from etips.learn.training.epoch_report import Report
from etips.machine import still_products
from etips.policies.deployed import Deployed
from etips.results.assembly import make_exhibits
from etips.results.evaluation_log import EvaluationLog, Models, make_log
from etips.results.exhibits import Exhibits, Record
from etips.results.followed_policies import (
    RULE,
    Followed,
    Policy,
    as_followed,
    follow,
    true_risk,
)
from etips.results.further_checks import FurtherChecks
from etips.results.named_policies import GivenPolicies, name_policies
from etips.results.results import MethodResult, Results
from etips.results.shift import find_shift
from etips.results.strength_measures import measure_features
from etips.results.summaries import summarize_data, summarize_method, without_figures
from etips.results.translation_path import path_of
from etips.results.unseen import require_unseen_stays
from etips.results.whole_stay_evaluation import (
    Throughout,
    assess_throughout,
    summarize_throughout,
)

Horizon = Literal["decision", "stay"]
"""What is looked at: one decision changed and the rest as logged, or the whole stay as well."""

Outcome = Literal["sum", "last"]
"""Of a whole stay: the sum of its losses, or the loss of its last decision."""


@still_products()
def evaluate(
    policies: GivenPolicies,
    data: Trajectories,
    *,
    estimators: Sequence[str] = (),
    interval: Interval = DEFAULT,
    models: Models | None = None,
    propensities: Floats | None = None,
    horizon: Horizon = "decision",
    outcome: Outcome = "sum",
    allow_seen: bool = False,
    negative_control: str | Floats | None = None,
    paths: Mapping[str, Sequence[Candidate]] | None = None,
    settings: Mapping[str, object] = {},
    cohort: Record | None = None,
    report: Report | None = None,
) -> Results:
    """Estimate the risk of policies, as they are followed, on decisions none of them learned from.

    Args:
        policies: One, a list, or several by name; a report is about the first. Functions are rules.
        data: Logged stays.
        estimators: Names, the headline first; all if left out.
        interval: How limits are made.
        models: How to cross-fit, on `data`, propensities that are not known and predicted losses.
        propensities: Known probability of every action, shape (n_decisions, n_actions).
        horizon: What to look at, one decision or the whole stay too.
        outcome: Of a whole stay.
        allow_seen: Evaluate policies on stays that they learned from; the results say so.
        negative_control: Column that no action can have changed, or its values at the decisions.
        paths: Candidates of each policy as in `make_exhibits`; those the policies hold if left out.
        settings: For the record, JSON-ready; those of a policy, by its name, may say its `method`.
        cohort: `funnel.json` of the cohort the data came from.
        report: Told after every epoch of what is fitted.
    """
    _check(horizon, outcome)
    started, models, named = time.perf_counter(), models or Models(), name_policies(policies)
    seen = require_unseen_stays(named, data, allow_seen=allow_seen)
    data = (further := FurtherChecks.of(data, negative_control)).data
    followed = {name: seen[name].mark(follow(own, data)) for name, own in named.items()}
    made = make_log(named, data, models, known=propensities, report=report)
    deployed = {name: own.deployed for name, own in followed.items()}
    stays = _whole_stays(horizon, deployed, made.log, data, models, outcome)
    judged = partial(assess_policies, estimators=estimators, interval=interval, stays=stays)
    methods = judged(followed, made.log, data, notes=made.notes, learned_by=_methods(settings))
    shown = _exhibits(made, headline=next(iter(named)), paths=_paths(named, paths), cohort=cohort)
    record = {**_record(models, estimators, interval), **settings}
    more = shown(data, made.log, deployed, settings=record), find_shift(named, data, made.log)
    bare = Results(summarize_data(data, cohort), methods, time.perf_counter() - started, *more)
    return further.add(bare, made.log, deployed, interval=interval)


def _whole_stays(horizon: Horizon, *asked: Any) -> Mapping[str, Throughout]:  # noqa: ANN401
    """What `assess_throughout` says of what is asked, where the horizon is the stay."""
    return assess_throughout(*asked) if horizon == "stay" else {}


def _exhibits(made: EvaluationLog, **more: Any) -> Callable[..., Exhibits]:  # noqa: ANN401
    """`make_exhibits` with what the log was made from."""
    return partial(make_exhibits, propensities=made.fitted, unbalanced=made.unbalanced, **more)


def _paths(
    named: Mapping[str, Policy], given: Mapping[str, Sequence[Candidate]] | None
) -> Mapping[str, Sequence[Candidate]]:
    """Candidates of each policy: those given, else those that the policies hold."""
    return {name: path_of(own) for name, own in named.items()} if given is None else given


def assess_policies(
    named: Mapping[str, Floats | Deployed | Followed],
    log: Log,
    data: Trajectories,
    *,
    notes: Mapping[str, str] = {},
    learned_by: Mapping[str, str] = {},
    estimators: Sequence[str] = (),
    interval: Interval = DEFAULT,
    stays: Mapping[str, Throughout] = {},
) -> tuple[MethodResult, ...]:
    """What the log says of policies, all of them judged together.

    Args:
        named: By name what each policy does, or the probabilities that it draws from, shape
            (n_decisions, n_actions).
        log: The decisions of `data`.
        data: For the truth, where it is known.
        notes: Where propensities and predicted losses came from.
        learned_by: Method of each policy that is not called by it.
        estimators: Names, the headline first; all if left out.
        interval: How limits are made.
        stays: What the log says of each over whole stays, where that was asked.
    """
    policies = {name: as_followed(policy) for name, policy in named.items()}
    judge = partial(assess, log, interval=interval)
    assessments = {
        name: judge(*own.deployed.judged, estimators=estimators) for name, own in policies.items()
    }
    # Holm: each policy tried makes a lucky one likelier.
    improvements = safe_improvement({name: own.gain for name, own in assessments.items()})
    about, features = summarize_data(data), measure_features(data)
    results = (
        summarize_method(
            name,
            assessments[name],
            as_drawn=_if_drawn(own, assessments[name], log, interval),
            sensitivity=bound_risk(log, view(log, *own.deployed.judged), interval=interval),
            improvement=improvement,
            truth=true_risk(own.deployed, data),
            notes={**notes, **own.notes},
            in_sample=own.in_sample,
            method=None if RULE in own.notes else find_method(learned_by.get(name, name)),
            data=about,
            features=features,
            whole_stay=summarize_throughout(stays.get(name), assessments[name]),
        )
        for (name, own), improvement in zip(policies.items(), improvements, strict=True)
    )
    return tuple(map(without_figures, results)) if _are_few(data) else tuple(results)


def _are_few(data: Trajectories) -> bool:
    """Whether there are too few people for anything to be told of what became of them."""
    return are_few(np.unique(data.cluster).size)


def _if_drawn(
    policy: Followed, followed: Assessment, log: Log, interval: Interval
) -> Estimate | None:
    """The headline of a policy that takes its likeliest action, if it drew its actions instead."""
    if policy.drawn is None:
        return None
    (headline,) = find_estimators((followed.estimates[0].estimator,), log)
    return headline.estimate(log, view(log, *policy.drawn.judged), interval=interval)


def _check(horizon: str, outcome: str) -> None:
    """Refuse what nobody can look at."""
    for name, value, known in (("horizon", horizon, Horizon), ("outcome", outcome, Outcome)):
        if value not in get_args(known):
            raise SettingError(name, f"must be one of {', '.join(get_args(known))}")


def _methods(settings: Mapping[str, object]) -> dict[str, str]:
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
