"""Sections on how far the figures hold: other estimators, whole stays, what nobody recorded."""

from collections.abc import Sequence

from markupsafe import Markup

from etips.disclosure import FEW
from etips.report.drawings import Axis, Mark, Row, Scale, interval, rows
from etips.report.figures import band, plot
from etips.report.policy_sections import POOLED
from etips.report.wording import clean, number, percent
from etips.results.records import (
    ONE_DECISION,
    THROUGHOUT,
    DifferenceResult,
    MethodResult,
    WholeStayResult,
)
from etips.results.results import Results
from etips.results.study_result import StudyResult

_OUTCOMES = {
    "sum": "the sum of the losses of a stay",
    "last": "the loss of the last decision of a stay",
}
_FURTHEST = 2.0  # changes beyond twice the clinicians' risk are drawn as arrows


def estimators(results: Results) -> dict[str, object] | None:
    """All estimators side by side, in a simulation beside the truth."""
    mean_loss = results.data.mean_loss
    estimated = [method for method in results.methods if method.estimates]
    if not estimated:
        return None
    scale = risk_scale(results.methods, mean_loss)
    charts = results.charts if isinstance(results, StudyResult) else ()
    used = {e.estimator: e for method in estimated for e in method.estimates}
    return {
        "with_truth": any(method.truth is not None for method in results.methods),
        "intervals": [(own, _intervals(own, scale, mean_loss)) for own in estimated],
        "formulas": [(e.label or e.estimator, e.sentence) for e in used.values() if e.sentence],
        "charts": [(chart, plot(chart)) for chart in charts if chart.name in POOLED],
    }


def risk_scale(methods: Sequence[MethodResult], mean_loss: float | None) -> Scale:
    """One scale for all policies; one without evidence does not stretch it."""
    sound = [own for own in methods if own.verdict != "unusable"] or methods
    ends = [end for own in sound for e in own.estimates for end in (e.risk, e.low, e.high)]
    return Scale.around([*ends, mean_loss, *(own.truth for own in methods)])


def _intervals(method: MethodResult, scale: Scale, mean_loss: float | None) -> Markup:
    """All estimates of one policy with their intervals; the truth where known."""
    drawn = []
    for position, own in enumerate(method.estimates):
        words = "none" if own.risk is None else number(own.risk)
        figures, label = (own.risk, own.low, own.high), clean(own.label or own.estimator, 14)
        drawn.append(interval(label, figures, words, strong=position == 0))
    ends = (("guide", mean_loss), ("truth", method.truth))
    lines = [Mark(look, value) for look, value in ends if value is not None]
    label = f"{clean(method.name)}: estimated risks, verdict {method.verdict}"
    return rows(drawn, Axis(scale, "risk (lower is better)", lines), label)


def whole_stay(results: Results) -> dict[str, object] | None:
    """What a policy changes once, and what it does throughout."""
    looked = [(own, own.whole_stay) for own in results.methods if own.whole_stay is not None]
    if not looked:
        return None
    whole = looked[0][1]
    return {
        "outcome": _OUTCOMES[whole.outcome],
        "one_decision": ONE_DECISION,
        "throughout": THROUGHOUT,
        "figures": [(m, w, _both_gains(m, w, results.data.mean_loss)) for m, w in looked],
        "few": FEW,
        "formulas": [(e.label or e.estimator, e.sentence or "") for e in whole.estimates],
    }


def _both_gains(method: MethodResult, whole: WholeStayResult, mean_loss: float | None) -> Markup:
    """Both gains with their intervals, as shares of the clinicians' risk."""
    usual = None if whole.clinicians is None else whole.clinicians.risk
    changes = {
        "one decision": _change(method.gain, mean_loss),
        "throughout": _change(whole.gain, usual),
    }
    ends = [min(max(end, -_FURTHEST), _FURTHEST) for own in changes.values() if own for end in own]
    drawn = [
        interval(name, own, percent(own[0]), strong=True) if own else Row(name, "none", strong=True)
        for name, own in changes.items()
    ]
    axis = Axis(
        Scale.around([*ends, 0.0]),
        "change against the clinicians (left is better)",
        [Mark("guide", 0.0)],
        ticks=lambda value, _: percent(value),
    )
    label = f"{clean(method.name)}: gain at one decision and over the stay, {whole.verdict}"
    return rows(drawn, axis, label)


def _change(
    gain: DifferenceResult | None, usual: float | None
) -> tuple[float, float, float] | None:
    """A gain with its limits as a share of what it is a gain over; None where not known."""
    if (
        gain is None
        or gain.difference is None
        or gain.low is None
        or gain.high is None
        or not usual
    ):
        return None
    return gain.difference / abs(usual), gain.low / abs(usual), gain.high / abs(usual)


def confounding(results: Results) -> dict[str, object] | None:
    """How strong something unseen would have to be to explain the gain away."""
    head = results.headline
    sensitivity = None if head is None else head.sensitivity
    if head is None or sensitivity is None or not sensitivity.bounds:
        return None
    words = "bounds of the risk under hidden confounding, verdict"
    label = f"{clean(head.name)}: {words} {head.verdict}"
    strengths = []
    for feature in sensitivity.features:
        *first, last = (clean(own, 40) for own in feature.names)
        together = f"{', '.join(first)} and {last} together" if first else last
        strengths.append((together, feature.gamma))
    return {
        "main": head,
        "figure": band(sensitivity.bounds, results.data.mean_loss, label),
        "methods": [own for own in results.methods if own.sensitivity],
        "features": strengths,
        "sharp": sensitivity.balanced,
    }


def control(results: Results) -> dict[str, object] | None:
    """What the method "finds" where no action can have done anything."""
    looked = [own for own in results.methods if own.negative_control is not None]
    return {"control": looked[0].negative_control, "methods": looked} if looked else None


def missing_losses(results: Results) -> dict[str, object] | None:
    """How many losses were not observed, of which actions, and what they could have been."""
    missing, names, head = results.data.missing_loss, results.data.actions, results.headline
    if missing is None:
        return None
    bounded = None if head is None else head.missing_loss
    by_share = sorted(missing.by_action, key=lambda own: -own.n_missing / own.n_taken)
    return {
        "missing": missing,
        "rows": [
            (clean(names[own.action]) if names else f"action {own.action}", own) for own in by_share
        ],
        "main": head,
        "bounds": () if bounded is None else bounded.bounds,
        "gamma": None if bounded is None else bounded.gamma_point,
    }
