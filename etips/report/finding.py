"""The finding: what was asked, what was found, how sure that is, and what it does not say."""

from etips.report.wording import LONG, clean, signed
from etips.results.conclusions import Conclusion, compare_strength, conclude, doubt_of
from etips.results.records import DataSummary, MethodResult
from etips.results.results import Results

_ALL = 1 - 1e-9  # a share that is all


def summarize_finding(results: Results) -> dict[str, object]:
    """What the template of the finding shows of the policy that the page is about."""
    head, data = results.headline, results.data
    if head is None:
        return {"main": None, "kind": "unknown"}
    conclusion = conclude(head, data)
    return {
        "main": head,
        "data": data,
        "kind": conclusion.kind,
        "conclusion": conclusion,
        "does": what_it_does(results, head.name),
        "loss": _loss(data),
        "compared": _compared(head, data, len(results.methods)),
        "unsaid": _unsaid(head, data, conclusion),
    }


def _loss(data: DataSummary) -> str:
    """What the loss is; results of before did not say, but the data may."""
    if data.loss is not None:
        return clean(data.loss, 2 * LONG)
    own = data.provenance.get("loss")
    words = "" if own is None else f", in the words of the data: {clean(own, 200)}"
    return f"The risk is the mean loss after a decision{words}; lower is better."


def _compared(method: MethodResult, data: DataSummary, n_policies: int) -> str:
    """The difference to the clinicians in a sentence."""
    gain = method.gain
    if gain is None or gain.difference is None:
        return "Whether that is better than the clinicians cannot be said."
    crowd = "" if n_policies == 1 else f", allowing for all {n_policies} policies that were tried"
    where = "" if data.one_decision or gain.better else "at one decision "
    if method.in_sample:
        tail = "the policy learned from some of these stays, so that this shows nothing of others"
    elif gain.better or gain.better_at_one_decision:
        tail = (
            f"{where}it would count as lower than the clinicians' risk{crowd}, "
            f"were the verdict not {method.verdict}"
        )
        if method.verdict == "reliable":
            tail = f"{where}it is shown to be lower than the clinicians' risk{crowd}"
            doubt = doubt_of(method, data)
            tail += f"; {doubt}" if doubt else ""
    elif conclude(method, data).kind == "worse":
        tail = "it is higher than the clinicians' risk, by more than chance explains"
    else:
        tail = f"it is not shown to be lower than the clinicians' risk{crowd}"
    limits = f"95\u00a0% interval {signed(gain.low)} to {signed(gain.high)}"
    return f"The difference is {signed(gain.difference)} ({limits}; below zero is better): {tail}."


def _unsaid(method: MethodResult, data: DataSummary, conclusion: Conclusion) -> list[str]:
    """What must not be read into the finding."""
    lines = []
    gain = method.gain
    if conclusion.kind == "none" and gain is not None:
        lines.append(
            f"That they are equal: anything from {signed(gain.low)} to {signed(gain.high)} fits "
            "the log (verdict: reliable)."
        )
    if not data.one_decision and method.whole_stay is None:
        lines.append("What would become of stays in which the policy decided throughout.")
    lines.append("What is right for one patient: a risk is a mean over many.")
    lines.append(
        f"{hidden_confounding(method)} No check on a log can see what the clinicians knew and the "
        "log does not."
    )
    return lines


def what_it_does(results: Results, policy: str) -> str | None:
    """What a policy comes to in a few words: "always ACTION", or as the clinicians.

    None for one that tells patients apart, or that is called so already.
    """
    exhibits = results.exhibits
    if exhibits is None:
        return None
    path = exhibits.paths.get(policy, ())
    kept = next((candidate for candidate in path if candidate.chosen), None)
    words = None
    if kept is not None and kept.clinicians:
        words = clean(kept.called)
    elif policy == exhibits.headline:
        names = results.data.actions or exhibits.actions.names
        shares = exhibits.actions.recommended_share
        only = [place for place, share in enumerate(shares) if share is not None and share >= _ALL]
        words = clean(f"always {names[only[0]]}") if only else None
    return None if words == clean(policy) else words


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
    verdict = first.verdict or "not estimated"
    words = conclude(first, results.data).words
    finding = "" if words in (verdict, "not known") else f"{words}; "
    return f"{clean(first.name)}{others}{where}: {finding}verdict: {verdict}"
