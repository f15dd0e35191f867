"""Policies that decide throughout: fitted values, ratios of stays, and what both say together."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from etips.data.trajectories import Trajectories
from etips.disclosure import any_few, shown_count
from etips.evaluation.assessment import Assessment
from etips.evaluation.inference.estimate import Contrast, Estimate
from etips.evaluation.log import Log, View, view
from etips.evaluation.verdict import Verdict
from etips.evaluation.whole_stay import (
    StayAssessment,
    StayLog,
    assess_stays,
    inherit,
    silent_values,
)
from etips.evaluation.whole_stay_course import Course, Outcome
from etips.learn.fitting.prepare import choose_device, prepare
from etips.learn.fitting.trainer import Trainer
from etips.learn.nuisance.stay_value import FittedStayValue, fit_stay_value
from etips.models.encoders.registry import as_encoder
from etips.policies.deployed import Deployed
from etips.results.evaluation_log import Models
from etips.results.records import (
    ONE_DECISION,
    THROUGHOUT,
    DifferenceResult,
    EstimateResult,
    WholeStayResult,
    existing,
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
    fitted = _fit(views, log, data, models, outcome) if models.outcome else {}
    found = {}
    for name, own in views.items():
        stays = StayLog(course, own.weight, log.cluster)
        if name in fitted:
            silent = np.zeros(log.n_decisions, bool) if own.abstains is None else own.abstains
            expected = silent_values(fitted[name].expected, own.probabilities, log.action, silent)
            stays = StayLog(course, own.weight, log.cluster, *expected, fitted[name].error)
        assessment = assess_stays(stays, n_policies=len(views))
        found[name] = Throughout(assessment, course, outcome)
    return found


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
    logged = np.eye(log.n_actions)[log.action]  # what is done where a policy abstains
    return {
        name: fit_stay_value(
            prepared,
            as_encoder(models.encoder),
            settings,
            Trainer(),
            seed=models.seed,
            policy=own.probabilities
            if own.abstains is None
            else np.where(own.abstains[:, None], logged, own.probabilities),
            outcome=outcome,
        )
        for name, own in views.items()
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
        estimates=tuple(_risk(estimate) for estimate in assessment.estimates),
        clinicians=None if few else _risk(assessment.clinicians),
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


def _span(own: Contrast) -> str:
    return f"{own.difference:+.3f} (95 % interval {own.low:+.3f} to {own.high:+.3f})"


def _risk(own: Estimate) -> EstimateResult:
    interval = own.risk, own.std_error, own.low, own.high
    return EstimateResult(own.estimator, *interval, *FORMULAS[own.estimator])
