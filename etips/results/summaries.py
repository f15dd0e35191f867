"""Evaluations made fit to be shown: words for a reader, and no count of 1 to 10 people.

Numbers that do not exist are left as NaN here; `records.existing` makes them None.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from etips.choice_record import ChoiceRecord
from etips.disclosure import shown_count, shown_parts
from etips.evaluation.assessment import Assessment
from etips.evaluation.estimators import ESTIMATORS
from etips.evaluation.inference.estimate import Estimate, Improvement
from etips.evaluation.sensitivity import Sensitivity
from etips.learn.fitting.candidates import Candidate
from etips.learn.learners.catalogue import Method
from etips.learn.learners.learner import Learner
from etips.results.followed_policies import RULE
from etips.results.records import (
    AtenpResult,
    DataSummary,
    DiagnosticsResult,
    EstimateResult,
    FeatureStrength,
    GainResult,
    GammaBound,
    MethodResult,
    PathCandidate,
    PrognosisResult,
    SensitivityResult,
    WholeStayResult,
    existing,
)

SAME = 0.0005  # what rounds to nothing

FEW_PEOPLE = "There are fewer than eleven people: what became of so few is not told."


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
    """One policy; where the mean loss is hidden, so is the gain.

    Args:
        improvement: Whether it beats the clinicians, corrected for all policies evaluated together.
        method: It was learned by, where that is known.
        as_drawn: The same policy if it drew its actions.
    """
    diagnosis, contrast, gain = assessment.diagnostics, assessment.matched, assessment.gain
    matched, unmatched = shown_parts(contrast.n_matched, contrast.n_unmatched)
    sentence = None if method is None else method.sentence
    if RULE in notes:
        sentence = f"A rule, written and not learned: {notes[RULE]}."
    shown_gain, prognosis = GainResult(), None
    if data.mean_loss is not None:
        throughout = whole_stay is not None and bool(whole_stay.gain.better)
        shown_gain = GainResult(
            *(gain.difference, gain.std_error, gain.low, gain.high),
            better=improvement.better and (data.one_decision or throughout),
            adjusted_p=improvement.adjusted_p,
            better_at_one_decision=improvement.better,
            guaranteed=assessment.guaranteed,
        )
        prognosis = summarize_prognosis(assessment)
    result = MethodResult(
        name=name,
        estimates=tuple(_estimate(estimate) for estimate in assessment.estimates),
        diagnostics=DiagnosticsResult(
            diagnosis.matching_factor.risk,
            shown_count(diagnosis.effective_sample_size),
            matched,
            diagnosis.clipped_share,
            diagnosis.max_weight,
        ),
        verdict=assessment.verdict.label,
        reasons=assessment.verdict.reasons,
        truth=truth,
        gain=shown_gain,
        atenp=AtenpResult(contrast.difference, matched, unmatched),
        sensitivity=summarize_sensitivity(sensitivity, features, hidden=data.mean_loss is None),
        notes=dict(notes),
        label=None if method is None else method.label,
        sentence=sentence,
        as_probabilities=None if as_drawn is None else _estimate(as_drawn),
        prognosis=prognosis,
        whole_stay=whole_stay,
        in_sample=in_sample,
    )
    return existing(result)


def without_figures(result: MethodResult) -> MethodResult:
    """The same without any figure of what became of people, for there are too few of them."""
    return replace(
        result,
        estimates=tuple(
            replace(estimate, risk=None, std_error=None, low=None, high=None)
            for estimate in result.estimates
        ),
        gain=GainResult(),
        atenp=AtenpResult(None, None, None),
        sensitivity=SensitivityResult(None, None, ()),
        as_probabilities=None,
        prognosis=None,
        whole_stay=None,
        missing_loss=None,
        negative_control=None,
        reasons=(FEW_PEOPLE, *result.reasons),
    )


def _estimate(estimate: Estimate) -> EstimateResult:
    entry = ESTIMATORS[estimate.estimator]
    interval = estimate.risk, estimate.std_error, estimate.low, estimate.high
    return EstimateResult(estimate.estimator, *interval, entry.label, entry.sentence)


def summarize_sensitivity(
    sensitivity: Sensitivity, features: tuple[FeatureStrength, ...] = (), *, hidden: bool = False
) -> SensitivityResult:
    """What something that cannot be seen could do; `hidden` leaves out all of the gain."""
    bounds = (
        GammaBound(
            *(bound.gamma, bound.risk_least.low, bound.risk_most.high),
            *((None, None) if hidden else (bound.gain_least.low, bound.gain_most.high)),
        )
        for bound in sensitivity.bounds
    )
    result = SensitivityResult(
        gamma_point=None if hidden else sensitivity.gamma_point,
        gamma_interval=None if hidden else sensitivity.gamma_interval,
        bounds=tuple(bounds),
        balanced=sensitivity.balanced,
        features=features,
    )
    return existing(result)


def summarize_prognosis(assessment: Assessment) -> PrognosisResult | None:
    """How well off the weighted patients were to begin with; None where that is not known."""
    balances, gain = assessment.diagnostics.prognosis, assessment.gain.difference
    if balances is None:
        return None
    difference = balances.plain.difference
    if not abs(difference) >= SAME:
        sentence = "The weighted patients had the same prognosis as all patients."
    else:
        by = f"{abs(difference):.3f} {'better' if difference < 0 else 'worse'}"
        sentence = f"The weighted patients had a prognosis {by} than all patients"
        if balances.rest is not None:
            left = abs(balances.rest.difference)
            sentence += f"; the predicted losses make up for all but {left:.3f} of it."
        elif gain < 0 and difference <= gain:
            sentence += ": that alone would explain the gain."
        else:
            sentence += "."
    return PrognosisResult(difference, balances.plain.std_error, sentence)


def choice_of(learner: object) -> ChoiceRecord | None:
    """What a super learner tried and kept; None of any other policy."""
    return learner.choice_ if isinstance(learner, Learner) else None


def path_of(learner: object) -> tuple[Candidate, ...]:
    """The candidates a learner looked at; none for one that looks at none."""
    return learner.path_ if isinstance(learner, Learner) else ()


def summarize_path(path: Sequence[Candidate]) -> tuple[PathCandidate, ...]:
    """The candidates as results show them; None where there is no number."""
    return tuple(
        existing(PathCandidate(**vars(candidate), sound=candidate.sound)) for candidate in path
    )


def shown_path(path: Sequence[PathCandidate]) -> tuple[PathCandidate, ...]:
    """The candidates fit to be shown: with equal weights an effective size is a count."""
    return tuple(
        replace(
            candidate,
            effective_size=candidate.effective_size and shown_count(candidate.effective_size),
        )
        for candidate in path
    )


def restore_path(path: Sequence[PathCandidate]) -> tuple[Candidate, ...]:
    """The candidates from what results show of them; NaN where there is no number."""
    numbers = ("translation", "risk", "std_error", "matching_factor", "effective_size", "strength")
    restored = []
    for shown in path:
        fields = {name: value for name, value in vars(shown).items() if name != "sound"}
        fields |= {name: math.nan for name in numbers if fields[name] is None}
        restored.append(Candidate(**fields))
    return tuple(restored)
