"""Policies that decide throughout: fitted values, ratios of stays, and what both say together."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from etips.data.decisions import Floats
from etips.data.trajectories import Trajectories
from etips.disclosure import any_few, shown_count
from etips.evaluation.assessment import Assessment
from etips.evaluation.inference.estimate import Estimate
from etips.evaluation.log import Log, View, view
from etips.evaluation.verdict import Verdict
from etips.evaluation.whole_stay import StayAssessment, StayLog, assess_stays, silent_values
from etips.evaluation.whole_stay_course import Course, Outcome
from etips.evaluation.whole_stay_verdict import inherit
from etips.files.json_documents import finite
from etips.learn.fitting.driver import drive_together
from etips.learn.fitting.prepare import choose_device, prepare
from etips.learn.nuisance.stay_value import FittedStayValue, fit_stay_value
from etips.models.encoders.registry import as_encoder
from etips.policies.deployed import Deployed
from etips.results.estimate_result import DifferenceResult, EstimateResult
from etips.results.evaluation_log import Models
from etips.results.whole_stay_result import (
    ONE_DECISION,
    THROUGHOUT,
    WholeStayResult,
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
    """What a log says of a policy that decides throughout.

    Args:
        assessment: Estimates, gain, diagnosis, verdict.
        course: The decisions in order.
        outcome: Of a stay.
    """

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

    Networks that predict it are cross-fitted on `data`, those of all policies side by side. They
    read earlier actions, which are part of the history that a policy makes.

    Args:
        policies: What each does, by name.
        log: The decisions of `data`.
        data: Logged stays.
        models: How to fit networks.
        outcome: Of a stay.
    """
    views = {name: view(log, *policy.judged) for name, policy in policies.items()}
    course = Course.of(data.decisions().stay, log.loss, outcome)
    fitted = _fit(views, log, data, models, outcome) if models.outcome else {}
    return {
        name: Throughout(
            assess_stays(_stays(course, log, own, fitted.get(name)), n_policies=len(views)),
            course,
            outcome,
        )
        for name, own in views.items()
    }


def _fit(
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
    works = [
        fit_stay_value(
            prepared,
            as_encoder(models.encoder),
            settings,
            seed=models.seed,
            policy=_table(log, own),
            outcome=outcome,
        )
        for own in views.values()
    ]
    return dict(zip(views, drive_together(works), strict=True))


def _table(log: Log, policy: View) -> Floats:
    """The policy's probabilities; where it abstains, what the clinicians did."""
    if policy.abstains is None or not policy.abstains.any():
        return policy.probabilities
    logged = np.eye(log.n_actions)[log.action]
    return np.asarray(np.where(policy.abstains[:, None], logged, policy.probabilities))


def _stays(course: Course, log: Log, policy: View, fitted: FittedStayValue | None) -> StayLog:
    if fitted is None:
        return StayLog(course, policy.weight, log.cluster)
    silent = np.zeros(log.n_decisions, bool) if policy.abstains is None else policy.abstains
    value, taken = silent_values(fitted.expected, policy.probabilities, log.action, silent)
    return StayLog(course, policy.weight, log.cluster, value, taken, fitted.error)


def summarize_throughout(
    found: Throughout | None, one_decision: Assessment
) -> WholeStayResult | None:
    """Fit to be shown: numbers that exist, and no count of 1 to 10 people.

    Args:
        found: What the log says of the policy over whole stays; None if nobody asked.
        one_decision: What it says of one changed decision.
    """
    if found is None:
        return None
    assessment, diagnosis = found.assessment, found.assessment.diagnosis
    verdict = inherit(assessment.verdict, one_decision.diagnostics)
    few = _gives_few_away(found.course)
    gain = assessment.gain
    shown = DifferenceResult(
        finite(gain.difference),
        finite(gain.std_error),
        finite(gain.low),
        finite(gain.high),
        gain.better and verdict.label != "unusable",
    )
    return WholeStayResult(
        outcome=found.outcome,
        estimates=tuple(_risk(estimate) for estimate in assessment.estimates),
        clinicians=None if few else _risk(assessment.clinicians),
        gain=DifferenceResult() if few else shown,
        effective_stays=finite(shown_count(diagnosis.effective_stays)),
        weight_share=finite(1 - diagnosis.capped_share),
        n_corrected=diagnosis.n_corrected,
        longest_stay=diagnosis.longest,
        verdict=verdict.label,
        reasons=verdict.reasons,
        sentence=_sentence(found, verdict, hidden=few),
        one_decision=_one_decision(one_decision, hidden=few),
        reversal=not few and one_decision.gain.difference < 0 < gain.difference,
    )


def _one_decision(assessment: Assessment, *, hidden: bool) -> str:
    if hidden:
        return f"{ONE_DECISION}: see above."
    gain = assessment.gain
    return f"{ONE_DECISION}: the risk changes by {_span(gain.difference, gain.low, gain.high)}."


def _sentence(found: Throughout, verdict: Verdict, *, hidden: bool) -> str:
    what = "the mean sum of losses" if found.outcome == "sum" else "the mean last loss"
    if hidden:
        return f"{THROUGHOUT}: {what} of a stay is not shown, lest it give a few people away."
    gain, risk = found.assessment.gain, found.assessment.estimates[0].risk
    usual = found.assessment.clinicians.risk
    return (
        f"{THROUGHOUT}: {what} of a stay is estimated at {risk:.3f} against {usual:.3f} under the "
        f"clinicians, a change of {_span(gain.difference, gain.low, gain.high)}; "
        f"verdict: {verdict.label}."
    )


def _span(value: float, low: float, high: float) -> str:
    return f"{value:+.3f} (95 % interval {low:+.3f} to {high:+.3f})"


def _risk(estimate: Estimate) -> EstimateResult:
    label, sentence = FORMULAS[estimate.estimator]
    return EstimateResult(
        estimate.estimator,
        finite(estimate.risk),
        finite(estimate.std_error),
        finite(estimate.low),
        finite(estimate.high),
        label,
        sentence,
    )


def _gives_few_away(course: Course) -> bool:
    """Whether the mean outcome, times the stays, is a count of a few people."""
    outcomes = course.outcomes
    if not np.isin(outcomes, (0, 1)).all():
        return False
    events = int(outcomes.sum())
    return any_few((events, outcomes.size - events))
