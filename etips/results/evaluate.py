"""Evaluate policies on logged decisions that none of them learned from."""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from types import FunctionType
from typing import Literal, get_args

import numpy as np

from etips.choice_record import ChoiceRecord
from etips.data.decisions import Floats
from etips.data.trajectories import Trajectories
from etips.disclosure import are_few
from etips.errors import SettingError
from etips.evaluation.assessment import Assessment, assess
from etips.evaluation.estimators import find_estimators
from etips.evaluation.inference.estimate import Estimate, safe_improvement
from etips.evaluation.inference.intervals import DEFAULT, Interval
from etips.evaluation.log import Log, view
from etips.evaluation.sensitivity import bound_risk
from etips.learn.fitting.candidates import Candidate
from etips.learn.learners.catalogue import find_method
from etips.learn.training.epoch_report import Report
from etips.machine import still_products
from etips.policies.deployed import Deployed
from etips.results.assembly import make_exhibits, measure_features
from etips.results.data_summary import summarize_data
from etips.results.evaluation_log import Models, make_log
from etips.results.followed_policies import (
    RULE,
    Followed,
    GivenPolicies,
    as_followed,
    follow_unseen,
    name_policies,
    require_unseen_stays,
    true_risk,
)
from etips.results.further_checks import FurtherChecks
from etips.results.records import MethodResult, Outcome, Record
from etips.results.results import Results
from etips.results.shift import find_shift
from etips.results.summaries import choice_of, path_of, summarize_method, without_figures
from etips.results.whole_stay_evaluation import (
    Throughout,
    assess_throughout,
    summarize_throughout,
)

Horizon = Literal["decision", "stay"]
"""What is looked at: one decision changed and the rest as logged, or the whole stay as well."""


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
    choices: Mapping[str, ChoiceRecord | None] | None = None,
    settings: Mapping[str, object] = {},
    cohort: Record | None = None,
    report: Report | None = None,
) -> Results:
    """Estimate the risk of policies, as they are followed, on decisions none of them learned from.

    Args:
        policies: One, a list, or several by name; a report is about the first. Functions are rules.
        estimators: Names, the headline first; all if left out.
        models: How to cross-fit, on `data`, propensities that are not known and predicted losses.
        propensities: Known probability of every action, shape (n_decisions, n_actions).
        allow_seen: Evaluate policies on stays that they learned from; the results say so.
        negative_control: Column that no action can have changed, or its values at the decisions.
        paths: Candidates of each policy; those it holds if left out, as with `choices`.
        settings: For the record, JSON-ready; those of a policy, by its name, may say its `method`.
        cohort: `funnel.json` of the cohort the data came from.
    """
    _require_known(horizon, outcome)
    started, models, named = time.perf_counter(), models or Models(), name_policies(policies)
    seen = require_unseen_stays(named, data, allow_seen=allow_seen)
    data = (further := FurtherChecks.of(data, negative_control)).data
    followed = follow_unseen(named, data, seen)
    made = make_log(named, data, models, known=propensities, report=report)
    log, deployed = made.log, {name: own.deployed for name, own in followed.items()}
    stays = assess_throughout(deployed, log, data, models, outcome) if horizon == "stay" else {}
    methods = assess_policies(
        *(followed, log, data),
        notes=made.notes,
        learned_by=_methods(settings),
        estimators=estimators,
        interval=interval,
        stays=stays,
    )
    exhibits = make_exhibits(
        *(data, log, deployed),
        headline=next(iter(named)),
        paths={name: path_of(own) for name, own in named.items()} if paths is None else paths,
        choices=choices or {name: choice_of(own) for name, own in named.items()},
        settings={**_record(models, estimators, interval), **settings},
        cohort=cohort,
        propensities=made.fitted,
    )
    shown = exhibits, find_shift(named, data, log)
    bare = Results(summarize_data(data, cohort), methods, time.perf_counter() - started, *shown)
    return further.add(bare, log, deployed, interval=interval)


def _require_known(horizon: str, outcome: str) -> None:
    for name, value, known in (("horizon", horizon, Horizon), ("outcome", outcome, Outcome)):
        if value not in get_args(known):
            raise SettingError(name, f"must be one of {', '.join(get_args(known))}")


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
        learned_by: Method of each policy that is not called by it.
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
            sensitivity=bound_risk(log, assessments[name].policy, interval=interval),
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
    few = are_few(np.unique(data.cluster).size)
    return tuple(map(without_figures, results)) if few else tuple(results)


def _if_drawn(
    policy: Followed, followed: Assessment, log: Log, interval: Interval
) -> Estimate | None:
    """The headline of a policy that takes its likeliest action, if it drew its actions instead."""
    if policy.drawn is None:
        return None
    (headline,) = find_estimators((followed.estimates[0].estimator,), log)
    return headline.estimate(log, view(log, *policy.drawn.judged), interval=interval)


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
