"""The finding: what was asked, what was found, how sure that is, and what it does not say."""

from etips.report.wording import LONG, clean
from etips.results.conclusions import compare_strength, conclude, doubt_of
from etips.results.records import MethodResult
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
        "doubt": doubt_of(head, data),
        "hidden": hidden_confounding(head),
        "n_policies": len(results.methods),
    }


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
