"""Policies as they are handed over: what each is called, does, and has seen of some stays."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from etips.data.decisions import Floats
from etips.data.trajectories import Trajectories
from etips.disclosure import part_told
from etips.errors import DataError, SettingError
from etips.learn.learners.learner import Learner
from etips.policies.deployed import Deployed, as_deployed
from etips.policies.learned_from import Overlap
from etips.policies.policy import FittedPolicy
from etips.policies.written_rules import Rule, WrittenRule

RULE = "rule"
"""The note that says what a rule says."""

UNSEEN = "none of them was learned from, by their hashes"
NOBODY = "nobody was learned from"
UNKNOWN = "cannot be checked: the policy keeps no hashes of the stays it learned from"
ALIKE = "checked by name alone: different stays hold the same"


@runtime_checkable
class Policy(Protocol):
    """Anything that gives the probability of every action at every decision."""

    def predict_proba(self, data: Trajectories) -> Floats:
        """Shape (n_decisions, n_actions), in decision order."""


Choose = Callable[[Any], Any]
"""A rule as a bare function of a row, see `Rule`."""

GivenPolicies = Policy | Choose | Sequence[Policy | Choose] | Mapping[str, Policy | Choose]


@dataclass(frozen=True, eq=False)
class Followed:
    """What comes of following a policy.

    Args:
        deployed: What it does.
        drawn: What it would do if it drew its actions; None where it does, or is always sure.
    """

    deployed: Deployed
    drawn: Deployed | None = None
    in_sample: bool = False
    notes: Mapping[str, str] = field(default_factory=dict)


def name_policies(policies: GivenPolicies) -> dict[str, Policy]:
    """The policies by name, in their order.

    A mapping has names. Otherwise a rule has its own, and anything else that of its class; equal
    names are numbered.
    """
    if isinstance(policies, Mapping):
        named = {str(name): as_policy(policy) for name, policy in policies.items()}
    else:
        named = {}
        for policy in map(as_policy, policies if isinstance(policies, Sequence) else [policies]):
            given = policy.name if isinstance(policy, WrittenRule) else ""
            name = first = given or type(policy).__name__
            number = 2
            while name in named:
                name, number = f"{first} {number}", number + 1
            named[name] = policy
    if not named:
        raise SettingError("policies", "must hold at least one policy")
    return named


def as_policy(policy: Policy | Choose) -> Policy:
    """A policy; a bare function becomes a rule."""
    if isinstance(policy, Policy) and not isinstance(policy, type):
        return policy
    if callable(policy) and not isinstance(policy, type):
        return Rule(policy)
    rule = "must have predict_proba, or be a function of a row that gives an action"
    raise SettingError("policies", rule, fix="Several of them go in a list or a mapping.")


def as_fitted(policy: Policy) -> FittedPolicy | None:
    """The fitted policy of ours that this is, or that this learner learned; None of any other."""
    fitted = policy.fitted_policy() if isinstance(policy, Learner) else policy
    return fitted if isinstance(fitted, FittedPolicy) else None


def follow(policy: Policy, data: Trajectories) -> Followed:
    """Follow a policy. One that is not ours is its probabilities: nothing else is known of it."""
    if isinstance(policy, WrittenRule):
        return Followed(policy.deployed(data), notes={RULE: policy.text})
    fitted = as_fitted(policy)
    if fitted is None:
        return Followed(Deployed.always(np.asarray(policy.predict_proba(data), np.float64)))
    answer = fitted.answer(data)
    deployed = fitted.deploy(answer)
    same = np.array_equal(deployed.probabilities, answer.probabilities)
    return Followed(deployed, None if same else Deployed(*answer))


def follow_unseen(
    policies: Mapping[str, Policy], data: Trajectories, sight: Mapping[str, tuple[bool, str]]
) -> dict[str, Followed]:
    """Follow each policy, with what `require_unseen_stays` says of it on record."""
    followed = {}
    for name, policy in policies.items():
        follows, (in_sample, note) = follow(policy, data), sight[name]
        notes = {**follows.notes, "evaluated stays": note}
        followed[name] = replace(follows, in_sample=in_sample, notes=notes)
    return followed


def as_followed(policy: Floats | Deployed | Followed) -> Followed:
    """What comes of following a policy; an array holds the probabilities that it draws from."""
    return policy if isinstance(policy, Followed) else Followed(as_deployed(policy))


def true_risk(policy: Deployed, data: Trajectories) -> float | None:
    """The true risk, where it is known: where it abstains the clinicians do what they do."""
    if data.truth is None:
        return None
    return data.true_risk(policy.left_to(data.true_logging()))


def require_unseen_stays(
    policies: Mapping[str, Policy], data: Trajectories, *, allow_seen: bool = False
) -> dict[str, tuple[bool, str]]:
    """Refuse stays, or patients, that one of the policies learned from.

    Of each policy whether it learned from some of them, and what is known of that in words.

    Args:
        allow_seen: Take them all the same, and say so.
    """
    sight = {}
    for name, policy in policies.items():
        fitted = as_fitted(policy)
        if isinstance(policy, WrittenRule) or (fitted is not None and fitted.kind == "uniform"):
            sight[name] = False, NOBODY
        elif fitted is None or fitted.seen is None:
            sight[name] = False, UNKNOWN
        else:
            sight[name] = _look(name, fitted.seen.overlap(data), data, allow_seen=allow_seen)
    return sight


def _look(name: str, overlap: Overlap, data: Trajectories, *, allow_seen: bool) -> tuple[bool, str]:
    if not (overlap.n_stays or overlap.n_patients):
        return False, ALIKE if overlap.alike else UNSEEN
    if overlap.n_stays:
        what, n, of = "stays", overlap.n_stays, data.n_stays
    else:
        what, n, of = "patients", overlap.n_patients, int(data.units.max()) + 1
    seen = f"all of the {what}" if n == of else part_told(n, of, what)
    learned = f"the policy {name} learned from {seen}"
    if not allow_seen:
        fix = (
            "Evaluate on others: `etips fit --hold-out 0.3` (etips.split) keeps some apart; "
            "allow_seen=True (--allow-seen) judges it in sample."
        )
        raise DataError("data", f"must be unseen; {learned}", fix=fix)
    return True, f"IN SAMPLE: {learned}"
