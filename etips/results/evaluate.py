"""Evaluate policies on logged decisions that none of them learned from."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import FunctionType
from typing import Literal, get_args

import numpy as np

from etips.choice_record import ChoiceRecord
from etips.data.decisions import Floats
from etips.data.sizes import count_missing_losses
from etips.data.trajectories import Trajectories
from etips.disclosure import any_few, are_few, shown_count
from etips.errors import DataError, SettingError
from etips.evaluation.assessment import CONTROL_LEVEL, Assessment, assess, control_gain
from etips.evaluation.censoring import LossModel, model_losses
from etips.evaluation.estimators import find_estimators
from etips.evaluation.inference.estimate import Contrast, Estimate, safe_improvement
from etips.evaluation.inference.intervals import DEFAULT, Interval
from etips.evaluation.log import Log, View, view
from etips.evaluation.sensitivity import bound_missing, bound_risk
from etips.evaluation.verdict import Verdict, inherit
from etips.evaluation.whole_stay import (
    StayAssessment,
    StayLog,
    assess_stays,
    silent_values,
)
from etips.evaluation.whole_stay_course import Course
from etips.learn.fitting.candidates import Candidate
from etips.learn.fitting.prepare import choose_device, prepare
from etips.learn.fitting.trainer import Trainer
from etips.learn.learners.catalogue import find_method
from etips.learn.nuisance.stay_value import FittedStayValue, fit_stay_value
from etips.learn.training.epoch_report import Report
from etips.machine import still_products
from etips.models.encoders.registry import as_encoder
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
from etips.results.records import (
    ONE_DECISION,
    THROUGHOUT,
    DifferenceResult,
    EstimateResult,
    MethodResult,
    MissingAction,
    MissingLossResult,
    NegativeControlResult,
    Outcome,
    Record,
    WholeStayResult,
    existing,
)
from etips.results.results import Results
from etips.results.shift import find_shift
from etips.results.summaries import (
    choice_of,
    path_of,
    summarize_method,
    summarize_sensitivity,
    without_figures,
)

Horizon = Literal["decision", "stay"]
"""What is looked at: one decision changed and the rest as logged, or the whole stay as well."""

GIVEN = "as given"
"""What a negative control is called that came as an array."""


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
    for setting, value, known in (("horizon", horizon, Horizon), ("outcome", outcome, Outcome)):
        if value not in get_args(known):
            raise SettingError(setting, f"must be one of {', '.join(get_args(known))}")
    started, models, named = time.perf_counter(), models or Models(), name_policies(policies)
    seen = require_unseen_stays(named, data, allow_seen=allow_seen)
    losses = model_losses(data)
    missing = summarize_missing(data, losses)
    data = data if losses is None else losses.complete(data)
    control = find_control(data, negative_control)
    followed = follow_unseen(named, data, seen)
    made = make_log(named, data, models, known=propensities, report=report)
    log, deployed = made.log, {name: policy.deployed for name, policy in followed.items()}
    methods = assess_policies(
        *(followed, log, data),
        notes=made.notes,
        learned_by={
            name: str(given["method"])
            for name, given in settings.items()
            if isinstance(given, Mapping) and "method" in given
        },
        estimators=estimators,
        interval=interval,
        stays=assess_throughout(deployed, log, data, models, outcome) if horizon == "stay" else {},
        losses=losses,
        control=control,
    )
    exhibits = make_exhibits(
        *(data, log, deployed),
        headline=next(iter(named)),
        paths={name: path_of(policy) for name, policy in named.items()} if paths is None else paths,
        choices=choices or {name: choice_of(policy) for name, policy in named.items()},
        settings={**_record(models, estimators, interval), **settings},
        cohort=cohort,
        propensities=made.fitted,
    )
    about = replace(summarize_data(data, cohort), missing_loss=missing)
    shift = find_shift(named, data, log)
    return Results(about, methods, time.perf_counter() - started, exhibits, shift)


def _record(models: Models, estimators: Sequence[str], interval: Interval) -> dict[str, object]:
    """The settings of the evaluation itself."""
    kind = interval if isinstance(interval, FunctionType) else type(interval)
    return {
        "evaluation seed": models.seed,
        "evaluation folds": models.training.n_folds,
        "propensities raised to at least": models.clip,
        "estimators": list(estimators) or "all",
        "interval": kind.__name__,
    }


def assess_policies(
    named: Mapping[str, Floats | Deployed | Followed],
    log: Log,
    data: Trajectories,
    *,
    notes: Mapping[str, str] = {},
    learned_by: Mapping[str, str] = {},
    estimators: Sequence[str] = (),
    interval: Interval = DEFAULT,
    stays: Mapping[str, "Throughout"] = {},
    losses: LossModel | None = None,
    control: "Control | None" = None,
) -> tuple[MethodResult, ...]:
    """What the log says of policies, all of them judged together.

    Args:
        named: By name what each policy does, or the probabilities that it draws from, shape
            (n_decisions, n_actions).
        learned_by: Method of each policy that is not called by it.
        stays: What the log says of each over whole stays, where that was asked.
        losses: The model of losses that are missing, where there are any.
    """
    policies = {name: as_followed(policy) for name, policy in named.items()}
    judge = partial(assess, log, interval=interval)
    assessments = {
        name: judge(*policy.deployed.judged, estimators=estimators)
        for name, policy in policies.items()
    }
    # Holm: each policy tried makes a lucky one likelier.
    improvements = safe_improvement(
        {name: assessment.gain for name, assessment in assessments.items()}
    )
    about, features = summarize_data(data), measure_features(data)
    results = []
    for (name, followed), improvement in zip(policies.items(), improvements, strict=True):
        assessment, drawn = assessments[name], None
        policy = assessment.policy
        if followed.drawn is not None:  # the headline, if the policy drew its actions instead
            (headline,) = find_estimators((assessment.estimates[0].estimator,), log)
            drawn = headline.estimate(log, view(log, *followed.drawn.judged), interval=interval)
        result = summarize_method(
            name,
            assessment,
            as_drawn=drawn,
            sensitivity=bound_risk(log, policy, interval=interval, losses=losses),
            improvement=improvement,
            truth=true_risk(followed.deployed, data),
            notes={**notes, **followed.notes},
            in_sample=followed.in_sample,
            method=None if RULE in followed.notes else find_method(learned_by.get(name, name)),
            data=about,
            features=features,
            whole_stay=summarize_throughout(stays.get(name), assessment),
        )
        if losses is not None:
            bounds = bound_missing(losses, log, policy, interval=interval)
            hidden = result.gain is None or result.gain.difference is None
            result = replace(result, missing_loss=summarize_sensitivity(bounds, hidden=hidden))
        if control is not None:
            result = _with_control(result, check_control(control, log, policy))
        results.append(result)
    few = are_few(np.unique(data.cluster).size)
    return tuple(map(without_figures, results)) if few else tuple(results)


def summarize_missing(data: Trajectories, losses: LossModel | None) -> MissingLossResult | None:
    """How many logged actions of stays, as they came, have no loss; None where all have one."""
    missing = count_missing_losses(data)
    if missing is None:
        return None
    rows = np.flatnonzero(missing.shown & (missing.missing > 0))
    n_missing, n_taken = missing.total or (None, None)
    return MissingLossResult(
        missing.treatment,
        n_missing,
        n_taken,
        by_action=tuple(
            MissingAction(int(a), int(missing.missing[a]), int(missing.taken[a]))
            for a in (rows if missing.total is not None else ())
        ),
        raised_share=None if losses is None else losses.raised_share,
        sentence=missing.tell(),
    )


@dataclass(frozen=True, eq=False)
class Control:
    """A negative control: values of something at the decisions, NaN where not known, (n,)."""

    name: str
    values: Floats
    seen: bool


def find_control(data: Trajectories, given: str | Floats | None) -> Control | None:
    """The negative control that was asked for, or that the data holds.

    Args:
        given: A feature (its last visible value counts), the data's own column, or one number a
            decision, shape (n_decisions,).
    """
    role = data.schema.roles.negative_control
    if given is None or (isinstance(given, str) and given == role):
        if data.negative_control is not None:
            return Control(role, data.negative_control[data.decision_rows], seen=False)
        if given is None:
            return None
    if not isinstance(given, str):
        values = np.asarray(given, dtype=np.float64)
        if values.shape != (data.n_decisions,):
            raise DataError("negative_control", "must have one entry a decision")
        return Control(GIVEN, values, seen=False)
    if given in data.schema.sequence:
        column = data.sequence[data.seen_rows][:, data.schema.sequence.index(given)]
    elif given in data.schema.static:
        column = data.static[data.decisions().stay][:, data.schema.static.index(given)]
    else:
        fix = "Name a feature, or name the column when the table is read."
        raise SettingError("negative_control", "must be a column of the data", fix=fix)
    return Control(given, column.astype(np.float64), seen=True)


def check_control(control: Control, log: Log, policy: View) -> NegativeControlResult:
    """The "gain" in a negative control; no number of fewer than eleven people."""
    gain = control_gain(log, policy, control.values)
    people = np.unique(log.clusters.code[np.isfinite(control.values)]).size
    if are_few(people) or not np.isfinite(gain.difference):
        nothing = None, None, None, CONTROL_LEVEL, None
        return NegativeControlResult(control.name, control.seen, *nothing, warning=False)
    numbers = gain.difference, gain.low, gain.high, CONTROL_LEVEL, gain.spread
    return existing(NegativeControlResult(control.name, control.seen, *numbers, gain.warning))


def _with_control(method: MethodResult, control: NegativeControlResult) -> MethodResult:
    """The same with a negative control, which makes the verdict doubtful where it warns."""
    if not control.warning:
        return replace(method, negative_control=control)
    return replace(
        method,
        negative_control=control,
        verdict="unusable" if method.verdict == "unusable" else "doubtful",
        reasons=(*method.reasons, control.sentence),
    )


FORMULAS = {
    "wdr": (
        "Doubly robust",
        "A model predicts the stay under the policy, and stays treated as the policy would correct "
        "it decision by decision.",
    ),
    "fqe": ("Model alone", "Predicts the stay under the policy; as good as the model."),
    "pdwis": ("Ratios alone", "Weighs stays by how likely their treatment is under the policy."),
    "logged": ("Logged stays", "The mean outcome of the stays as they were."),
}
"""What a page calls each estimate of a whole stay, and what it does."""


@dataclass(frozen=True, eq=False)
class Throughout:
    """What a log says of a policy that decides throughout."""

    assessment: StayAssessment
    course: Course
    outcome: Outcome


def assess_throughout(
    policies: Mapping[str, Deployed],
    log: Log,
    data: Trajectories,
    models: Models,
    outcome: Outcome,
) -> dict[str, Throughout]:
    """Estimate the outcome of stays in which each policy decides throughout.

    Networks that predict it are cross-fitted on `data`. They read earlier actions, which are part
    of the history that a policy makes.
    """
    views = {name: view(log, *policy.judged) for name, policy in policies.items()}
    course = Course.of(data.decisions().stay, log.loss, outcome)
    fitted = _fit_stay_values(views, log, data, models, outcome) if models.outcome else {}
    found = {}
    for name, policy in views.items():
        stays = StayLog(course, policy.weight, log.cluster)
        if name in fitted:
            silent = np.zeros(log.n_decisions, bool) if policy.abstains is None else policy.abstains
            expected = silent_values(
                fitted[name].expected, policy.probabilities, log.action, silent
            )
            stays = StayLog(course, policy.weight, log.cluster, *expected, fitted[name].error)
        assessment = assess_stays(stays, n_policies=len(views))
        found[name] = Throughout(assessment, course, outcome)
    return found


def _fit_stay_values(
    views: Mapping[str, View], log: Log, data: Trajectories, models: Models, outcome: Outcome
) -> dict[str, FittedStayValue]:
    """Networks that predict the outcome still to come after every action, by policy."""
    prepared = prepare(
        data,
        n_folds=models.n_folds,
        seed=models.seed,
        device=choose_device(models.training.device),
        earlier_actions=True,
    )
    settings = models.training.with_seed(models.seed).outcome
    logged = np.eye(log.n_actions)[log.action]  # what is done where a policy abstains
    return {
        name: fit_stay_value(
            prepared,
            as_encoder(models.encoder),
            settings,
            Trainer(),
            seed=models.seed,
            policy=policy.probabilities
            if policy.abstains is None
            else np.where(policy.abstains[:, None], logged, policy.probabilities),
            outcome=outcome,
        )
        for name, policy in views.items()
    }


def summarize_throughout(
    throughout: Throughout | None, one_decision: Assessment
) -> WholeStayResult | None:
    """Fit to be shown: no count of 1 to 10 people; None where whole stays were not looked at.

    Args:
        one_decision: What it says of one changed decision.
    """
    if throughout is None:
        return None
    assessment, outcomes = throughout.assessment, throughout.course.outcomes
    verdict = inherit(assessment.verdict, one_decision.diagnostics)
    few = False  # whether the mean outcome, times the stays, is a count of a few people
    if np.isin(outcomes, (0, 1)).all():
        few = any_few((int(outcomes.sum()), outcomes.size - int(outcomes.sum())))
    diagnosis, gain, near = assessment.diagnosis, assessment.gain, one_decision.gain
    better = assessment.better and verdict.label != "unusable"
    change = DifferenceResult(gain.difference, gain.std_error, gain.low, gain.high, better)
    result = WholeStayResult(
        outcome=throughout.outcome,
        estimates=tuple(_shown_estimate(estimate) for estimate in assessment.estimates),
        clinicians=None if few else _shown_estimate(assessment.clinicians),
        gain=DifferenceResult() if few else change,
        effective_stays=shown_count(diagnosis.effective_stays),
        weight_share=1 - diagnosis.capped_share,
        n_corrected=diagnosis.n_corrected,
        longest_stay=diagnosis.longest,
        verdict=verdict.label,
        reasons=verdict.reasons,
        sentence=_sentence(throughout, verdict, hidden=few),
        one_decision=f"{ONE_DECISION}: see above."
        if few
        else f"{ONE_DECISION}: the risk changes by {_span(near)}.",
        reversal=not few and near.difference < 0 < gain.difference,
    )
    return existing(result)


def _sentence(throughout: Throughout, verdict: Verdict, *, hidden: bool) -> str:
    what = "the mean sum of losses" if throughout.outcome == "sum" else "the mean last loss"
    if hidden:
        return f"{THROUGHOUT}: {what} of a stay is not shown, lest it give a few people away."
    gain, risk = throughout.assessment.gain, throughout.assessment.estimates[0].risk
    usual = throughout.assessment.clinicians.risk
    return (
        f"{THROUGHOUT}: {what} of a stay is estimated at {risk:.3f} against {usual:.3f} under the "
        f"clinicians, a change of {_span(gain)}; verdict: {verdict.label}."
    )


def _span(contrast: Contrast) -> str:
    return f"{contrast.difference:+.3f} (95 % interval {contrast.low:+.3f} to {contrast.high:+.3f})"


def _shown_estimate(estimate: Estimate) -> EstimateResult:
    interval = estimate.risk, estimate.std_error, estimate.low, estimate.high
    return EstimateResult(estimate.estimator, *interval, *FORMULAS[estimate.estimator])
