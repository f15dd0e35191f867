"""The finding in two sentences: what was estimated, how far it can be trusted, what it means."""

from markupsafe import Markup

from etips.report.section import Section
from etips.report.sections.whole_stay_risk import stay_warning
from etips.report.wording import LONG, clean, name, number, signed, span
from etips.results.conclusions import doubt_of
from etips.results.feature_strength import compare_strength
from etips.results.results import DataSummary, MethodResult, Results

_TRUST = {
    "reliable": "and the log supports that number (verdict: reliable)",
    "doubtful": "but the verdict is doubtful, so read that number as a question, not an answer",
    "unusable": "but the verdict is unusable: the log cannot answer, so do not use that number",
}


def _make(results: Results) -> dict[str, object]:
    head = results.headline
    return {
        "main": head,
        "said": _sentences(head, results.data, len(results.methods)) if head else None,
        "warning": stay_warning(head) if head else None,
        "confounding": hidden_confounding(head) if head else None,
    }


FINDING = Section("finding", "Finding", "finding.html", _make)


def _sentences(method: MethodResult, data: DataSummary, n_policies: int) -> Markup:
    """Two sentences on one policy; the verdict stands in the sentence that holds the number."""
    if not method.estimates:
        return Markup("No risk of {} was estimated from the log.").format(name(method.name))
    head = method.estimates[0]
    first = Markup(
        "Had the policy <b>{}</b> decided{}, the risk is estimated at <strong>{}</strong> "
        "(95\u00a0% interval {}) against {} under the clinicians, {}."
    ).format(
        name(method.name),
        "" if data.one_decision else " once and all else been as logged",
        number(head.risk),
        span(head.low, head.high),
        number(data.mean_loss),
        _TRUST[method.verdict] if method.verdict else "without a verdict",
    )
    return first + " " + _gain(method, data, n_policies)


def _gain(method: MethodResult, data: DataSummary, n_policies: int) -> Markup:
    gain = method.gain
    if gain is None or gain.difference is None:
        return Markup("Whether that is better than the clinicians cannot be said.")
    crowd = "" if n_policies == 1 else f", allowing for all {n_policies} policies that were tried"
    shown = gain.better or gain.better_at_one_decision
    where = "" if data.one_decision or gain.better else "at one decision "
    doubt = doubt_of(method, data)
    if method.in_sample:
        tail = "the policy learned from some of these stays, so that this shows nothing of others"
    elif shown and method.verdict == "reliable":
        tail = f"{where}it is shown to be lower than the clinicians' risk{crowd}"
        tail += f"; {doubt}" if doubt else ""
    elif shown:
        tail = (
            f"{where}it would count as lower than the clinicians' risk{crowd}, "
            f"were the verdict not {method.verdict}"
        )
    else:
        tail = f"it is not shown to be lower than the clinicians' risk{crowd}"
    limits = f"95\u00a0% interval {signed(gain.low)} to {signed(gain.high)}"
    return Markup("The difference is {} ({}; below zero is better): {}.").format(
        signed(gain.difference), limits, tail
    )


def hidden_confounding(method: MethodResult) -> str:
    """What it would take to undo the gain, in words."""
    if method.sensitivity is None:
        return "Sensitivity to hidden confounding was not computed."
    gain = None if method.gain is None else method.gain.difference
    if gain is None:
        return "What hidden confounding could undo is not known, since the gain is not."
    if gain >= 0:
        return "There is no gain that hidden confounding could undo."
    gamma = method.sensitivity.gamma_point
    if gamma is None:
        return "Even very strong hidden confounding would not undo the gain."
    if gamma < 1.01:
        return "Next to no hidden confounding would be enough to undo the gain."
    like = compare_strength(gamma, method.sensitivity.features)
    return (
        "If clinicians knew something the log does not hold, and it changed the odds of a "
        f"treatment by a factor of {gamma:.2f}, the gain could be nothing but that."
    ) + ("" if like is None else f" {clean(like, LONG)}.")


def one_line(results: Results) -> str:
    """What the command line says of a report it wrote."""
    first, more = results.headline, len(results.methods) - 1
    if first is None:
        return "no policy"
    others = "" if not more else f" and {more} other {'policies' if more > 1 else 'policy'}"
    decisions = results.data.n_decisions
    where = "" if decisions is None else f" on {decisions:,} decisions"
    return f"{clean(first.name)}{others}{where}; verdict: {first.verdict or 'not estimated'}"
