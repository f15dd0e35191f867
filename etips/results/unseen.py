"""Whether policies are judged on stays that they did not learn from."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from etips.data.trajectories import Trajectories
from etips.disclosure import part_told
from etips.errors import DataError
from etips.policies.seen_stays import Overlap
from etips.policies.written_rules import WrittenRule
from etips.results.followed_policies import Followed, Policy, as_fitted

UNSEEN = "none of them was learned from, by their hashes"
NOBODY = "nobody was learned from"
UNKNOWN = "cannot be checked: the policy keeps no hashes of the stays it learned from"
ALIKE = "checked by name alone: different stays hold the same"


class Sight(NamedTuple):
    """What a policy has seen of the stays it is judged on.

    Args:
        in_sample: Whether it learned from some of them.
        note: In words, for the record.
    """

    in_sample: bool
    note: str

    def mark(self, policy: Followed) -> Followed:
        """The policy as it is followed, with that on record."""
        notes = {**policy.notes, "evaluated stays": self.note}
        return replace(policy, in_sample=self.in_sample, notes=notes)


def require_unseen_stays(
    policies: Mapping[str, Policy], data: Trajectories, *, allow_seen: bool = False
) -> dict[str, Sight]:
    """Refuse stays, or patients, that one of the policies learned from.

    Args:
        policies: By name.
        data: What they are to be judged on.
        allow_seen: Take them all the same, and say so.
    """
    sights = {}
    for name, policy in policies.items():
        fitted = as_fitted(policy)
        if isinstance(policy, WrittenRule) or (fitted is not None and fitted.kind == "uniform"):
            sights[name] = Sight(False, NOBODY)
        elif fitted is None or fitted.seen is None:
            sights[name] = Sight(False, UNKNOWN)
        else:
            sights[name] = _look(name, fitted.seen.overlap(data), data, allow_seen=allow_seen)
    return sights


def _look(name: str, overlap: Overlap, data: Trajectories, *, allow_seen: bool) -> Sight:
    if not (overlap.n_stays or overlap.n_patients):
        return Sight(False, ALIKE if overlap.alike else UNSEEN)
    told = f"the policy {name} learned from {_told(overlap, data)}"
    if not allow_seen:
        fix = (
            "Evaluate on others: `etips fit --hold-out 0.3` (etips.split) keeps some apart; "
            "allow_seen=True (--allow-seen) judges it in sample."
        )
        raise DataError("data", f"must be unseen; {told}", fix=fix)
    return Sight(True, f"IN SAMPLE: {told}")


def _told(overlap: Overlap, data: Trajectories) -> str:
    """How many, unless they or those left are few."""
    if overlap.n_stays:
        what, n, of = "stays", overlap.n_stays, data.n_stays
    else:
        what, n, of = "patients", overlap.n_patients, int(data.units.max()) + 1
    if n == of:
        return f"all of the {what}"
    return part_told(n, of, what)
