"""Evaluations made fit to be shown: numbers that exist, and no count of 1 to 10 people."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from etips.data.trajectories import Trajectories
from etips.disclosure import shown_count, shown_parts
from etips.evaluation.assessment import Assessment
from etips.evaluation.diagnostics import Diagnostics
from etips.evaluation.estimators import ESTIMATORS
from etips.evaluation.inference.estimate import Estimate
from etips.evaluation.inference.improvement import Improvement
from etips.evaluation.sensitivity import Sensitivity
from etips.files.json_documents import finite
from etips.learn.learners.catalogue import Method
from etips.results.attrition import sizes_beside
from etips.results.exhibits import Record
from etips.results.feature_strength import FeatureStrength
from etips.results.followed_policies import RULE
from etips.results.loss_words import tell_loss
from etips.results.prognosis_words import summarize_prognosis
from etips.results.results import (
    AtenpResult,
    DataSummary,
    DiagnosticsResult,
    EstimateResult,
    GainResult,
    GammaBound,
    MethodResult,
    SensitivityResult,
)
from etips.results.whole_stay_result import WholeStayResult


def summarize_data(data: Trajectories, cohort: Record | None = None) -> DataSummary:
    """What policies were evaluated on; a mean loss times the decisions is a count of events.

    Args:
        data: The evaluated stays.
        cohort: `funnel.json` of the cohort they came from: what it told is not told again by
            subtraction.
    """
    sizes = sizes_beside(data, cohort)
    loss, n = data.logged_loss, data.n_decisions
    mean_loss: float | None = float(loss.mean())
    n_events = None
    if np.isin(loss, (0, 1)).all():
        n_events, _ = shown_parts(int(loss.sum()), n - int(loss.sum()))
        mean_loss = None if n_events is None else mean_loss
    return DataSummary(
        n_stays=sizes.n_stays,
        n_steps=sizes.n_steps,
        n_decisions=sizes.n_decisions,
        n_events=n_events,
        n_actions=data.n_actions,
        lag=data.lag,
        mean_loss=mean_loss,
        actions=tuple(data.schema.actions),
        provenance=dict(data.schema.provenance),
        loss=tell_loss(data.schema, loss),
        one_decision=bool(np.bincount(data.decisions().stay, minlength=1).max() <= 1),
    )


def summarize_method(
    name: str,
    assessment: Assessment,
    *,
    sensitivity: Sensitivity,
    improvement: Improvement,
    truth: float | None,
    notes: Mapping[str, str],
    method: Method | None,
    data: DataSummary,
    as_drawn: Estimate | None = None,
    whole_stay: WholeStayResult | None = None,
    features: tuple[FeatureStrength, ...] = (),
    in_sample: bool = False,
) -> MethodResult:
    """One policy.

    Args:
        name: What it is called.
        assessment: Estimates, gain, diagnosis, verdict.
        sensitivity: What hidden confounding could do to its risk and its gain.
        improvement: Whether it beats the clinicians, corrected for all policies evaluated together.
        truth: Its true risk, in simulated worlds.
        notes: Where propensities and predicted losses came from.
        method: It was learned by, where that is known.
        data: What it was evaluated on. Where the mean loss is hidden, so is the gain.
        as_drawn: The same policy if it drew its actions.
        whole_stay: What becomes of stays in which it decides throughout; None if nobody looked.
        features: How strong recorded features are.
        in_sample: Whether it learned from some of the data.
    """
    matched, unmatched = shown_parts(assessment.matched.n_matched, assessment.matched.n_unmatched)
    return MethodResult(
        name=name,
        estimates=tuple(_estimate(estimate) for estimate in assessment.estimates),
        diagnostics=_diagnostics(assessment.diagnostics, matched),
        verdict=assessment.verdict.label,
        reasons=assessment.verdict.reasons,
        truth=truth,
        gain=_gain(assessment, improvement, data, whole_stay),
        atenp=AtenpResult(finite(assessment.matched.difference), matched, unmatched),
        sensitivity=summarize_sensitivity(sensitivity, features),
        notes=dict(notes),
        label=None if method is None else method.label,
        sentence=_sentence(method, notes),
        as_probabilities=None if as_drawn is None else _estimate(as_drawn),
        prognosis=summarize_prognosis(assessment, hidden=data.mean_loss is None),
        whole_stay=whole_stay,
        in_sample=in_sample,
    )


FEW_PEOPLE = "There are fewer than eleven people: what became of so few is not told."


def without_figures(result: MethodResult) -> MethodResult:
    """The same without any figure of what became of people, for there are too few of them."""
    blank = (replace(e, risk=None, std_error=None, low=None, high=None) for e in result.estimates)
    return replace(
        result,
        estimates=tuple(blank),
        gain=GainResult(),
        atenp=AtenpResult(None, None, None),
        sensitivity=SensitivityResult(None, None, ()),
        as_probabilities=None,
        prognosis=None,
        whole_stay=None,
        reasons=(FEW_PEOPLE, *result.reasons),
    )


def _sentence(method: Method | None, notes: Mapping[str, str]) -> str | None:
    """What a policy does, for a reader: its method's words, or those of a rule itself."""
    if RULE in notes:
        return f"A rule, written and not learned: {notes[RULE]}."
    return None if method is None else method.sentence


def _diagnostics(found: Diagnostics, n_matched: int | None) -> DiagnosticsResult:
    return DiagnosticsResult(
        matching_factor=finite(found.matching_factor.risk),
        effective_sample_size=_size(found.effective_sample_size),
        n_matched=n_matched,
        clipped_share=finite(found.clipped_share),
        max_weight=finite(found.max_weight),
    )


def _estimate(estimate: Estimate) -> EstimateResult:
    return EstimateResult(
        estimator=estimate.estimator,
        risk=finite(estimate.risk),
        std_error=finite(estimate.std_error),
        low=finite(estimate.low),
        high=finite(estimate.high),
        label=ESTIMATORS[estimate.estimator].label,
        sentence=ESTIMATORS[estimate.estimator].sentence,
    )


def _gain(
    assessment: Assessment,
    improvement: Improvement,
    data: DataSummary,
    whole_stay: WholeStayResult | None,
) -> GainResult:
    """Against the clinicians; "better" without more only where the whole stay is, too."""
    if data.mean_loss is None:
        return GainResult()
    gain = assessment.gain
    throughout = whole_stay is not None and bool(whole_stay.gain.better)
    return GainResult(
        difference=finite(gain.difference),
        std_error=finite(gain.std_error),
        low=finite(gain.low),
        high=finite(gain.high),
        adjusted_p=finite(improvement.adjusted_p),
        better=improvement.better and (data.one_decision or throughout),
        better_at_one_decision=improvement.better,
        guaranteed=assessment.guaranteed,
    )


def summarize_sensitivity(
    sensitivity: Sensitivity, features: tuple[FeatureStrength, ...]
) -> SensitivityResult:
    """What hidden confounding could do, as numbers that exist."""
    return SensitivityResult(
        gamma_point=finite(sensitivity.gamma_point),
        gamma_interval=finite(sensitivity.gamma_interval),
        bounds=tuple(
            GammaBound(bound.gamma, finite(bound.risk_least.low), finite(bound.risk_most.high))
            for bound in sensitivity.bounds
        ),
        balanced=sensitivity.balanced,
        features=features,
    )


def _size(value: float) -> float | None:
    """An effective size: with equal weights it is a count, so a small one is not shown."""
    return finite(shown_count(value))
