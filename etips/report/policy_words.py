"""What a policy comes to, where that fits in a few words: a constant, or the clinicians."""

from etips.report.wording import clean
from etips.results.results import Results

_ALL = 1 - 1e-9


def what_it_does(results: Results, policy: str) -> str | None:
    """The rule, "always ACTION" say; None for one that tells patients apart, or is called so.

    Args:
        results: For the candidates of the policy, and what it recommends.
        policy: Its name.
    """
    words = _rule_of(results, policy)
    return None if words is None or words == clean(policy) else words


def _rule_of(results: Results, policy: str) -> str | None:
    exhibits = results.exhibits
    if exhibits is None:
        return None
    names = results.data.actions or exhibits.actions.names
    path = exhibits.paths.get(policy, ())
    kept = next((candidate for candidate in path if candidate.chosen), None)
    if kept is not None and (kept.clinicians or kept.action is not None):
        return clean(kept.called_with(names))
    if policy != exhibits.headline:
        return None
    shares = exhibits.actions.recommended_share
    only = [place for place, share in enumerate(shares) if share is not None and share >= _ALL]
    return clean(f"always {names[only[0]]}") if only else None
