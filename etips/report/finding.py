"""The finding in two sentences: what was estimated, how far it can be trusted, what it means."""

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from etips.report.wording import clean, headline_of, name, number, signed, span

_TRUST = {
    "reliable": "and the log supports that number (verdict: reliable)",
    "doubtful": "but the verdict is doubtful, so read that number as a question, not an answer",
    "unusable": "but the verdict is unusable: the log cannot answer, so do not use that number",
}


def finding(method: Mapping[str, Any], data: Mapping[str, Any], n_policies: int) -> Markup:
    """Two sentences on one policy; the verdict stands in the sentence that holds the number."""
    if not method["estimates"]:
        return Markup("No risk of {} was estimated from the log.").format(name(method["name"]))
    head = method["estimates"][0]
    first = Markup(
        "Had the policy <b>{}</b> decided, the risk is estimated at <strong>{}</strong> "
        "(95\u00a0% interval {}) against {} under the clinicians, {}."
    ).format(
        name(method["name"]),
        number(head["risk"]),
        span(head["low"], head["high"]),
        number(data.get("mean_loss")),
        _TRUST.get(method["verdict"], "without a verdict"),
    )
    return first + " " + _gain(method, n_policies)


def _gain(method: Mapping[str, Any], n_policies: int) -> Markup:
    gain = method.get("gain") or {}
    if gain.get("difference") is None:
        return Markup("Whether that is better than the clinicians cannot be said.")
    crowd = "" if n_policies == 1 else f", allowing for all {n_policies} policies that were tried"
    if gain.get("better") and method["verdict"] == "reliable":
        tail = f"it is shown to be lower than the clinicians' risk{crowd}"
    elif gain.get("better"):
        tail = (
            f"it would count as lower than the clinicians' risk{crowd}, "
            f"were the verdict not {method['verdict']}"
        )
    else:
        tail = f"it is not shown to be lower than the clinicians' risk{crowd}"
    return Markup("The difference is {} ({}; below zero is better): {}.").format(
        signed(gain["difference"]), _limits(gain), tail
    )


def _limits(gain: Mapping[str, Any]) -> str:
    return f"95\u00a0% interval {signed(gain.get('low'))} to {signed(gain.get('high'))}"


def hidden_confounding(method: Mapping[str, Any]) -> str:
    """What it would take to undo the gain, in words."""
    found = method.get("sensitivity")
    gain = (method.get("gain") or {}).get("difference")
    if not found:
        return "Sensitivity to hidden confounding was not computed."
    if gain is None:
        return "What hidden confounding could undo is not known, since the gain is not."
    if gain >= 0:
        return "There is no gain that hidden confounding could undo."
    gamma = found.get("gamma_point")
    if gamma is not None and gamma < 1.01:
        return "Next to no hidden confounding would be enough to undo the gain."
    if gamma is None:
        return "Even very strong hidden confounding would not undo the gain."
    return (
        "If clinicians knew something the log does not hold, and it changed the odds of a "
        f"treatment by a factor of {gamma:.2f}, the gain could be nothing but that."
    )


def one_line(document: Mapping[str, Any]) -> str:
    """What the command line says of a report it wrote."""
    methods, first = document["methods"], headline_of(document)
    if first is None:
        return "no policy"
    word = first["verdict"] or "not estimated"
    more = len(methods) - 1
    others = "" if not more else f" and {more} other {'policies' if more > 1 else 'policy'}"
    decisions = document["data"].get("n_decisions")
    where = "" if decisions is None else f" on {decisions:,} decisions"
    return f"{clean(first['name'])}{others}{where}; verdict: {word}"
