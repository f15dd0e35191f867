"""Policies as people hand them over: one, a list, a mapping, a bare function; each gets a name."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from etips.errors import SettingError
from etips.policies.written_rules import Rule, WrittenRule
from etips.results.followed_policies import Policy

Choose = Callable[[Any], Any]
"""A rule as a bare function of a row, see `Rule`."""

GivenPolicies = Policy | Choose | Sequence[Policy | Choose] | Mapping[str, Policy | Choose]


def name_policies(policies: GivenPolicies) -> dict[str, Policy]:
    """The policies by name, in their order.

    A mapping has names. Else a rule has its own, and anything else that of its class; those that
    would be called alike are numbered.

    Args:
        policies: One, several, or several by name.
    """
    if isinstance(policies, Mapping):
        named = {str(name): as_policy(policy) for name, policy in policies.items()}
    elif isinstance(policies, Sequence):
        named = {}
        for policy in map(as_policy, policies):
            named[_unique(_own_name(policy), named)] = policy
    else:
        policy = as_policy(policies)
        named = {_own_name(policy): policy}
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


def _own_name(policy: Policy) -> str:
    if isinstance(policy, WrittenRule) and policy.name:
        return policy.name
    return type(policy).__name__


def _unique(name: str, taken: Mapping[str, Policy]) -> str:
    number = 2
    new = name
    while new in taken:
        new, number = f"{name} {number}", number + 1
    return new
