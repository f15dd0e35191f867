"""Policies as somebody follows them: what each does at every decision of some stays."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from etips.data.decisions import Floats
from etips.data.trajectories import Trajectories
from etips.learn.learners.learner import Learner
from etips.policies.deployed import Deployed, as_deployed
from etips.policies.policy import FittedPolicy
from etips.policies.written_rules import WrittenRule

RULE = "rule"
"""The note that says what a rule says."""


@runtime_checkable
class Policy(Protocol):
    """Anything that gives the probability of every action at every decision."""

    def predict_proba(self, data: Trajectories) -> Floats:
        """Shape (n_decisions, n_actions), in decision order."""


@dataclass(frozen=True, eq=False)
class Followed:
    """What comes of following a policy.

    Args:
        deployed: What it does.
        drawn: What it would do if it drew its actions; None where it does, or is always sure.
        in_sample: Whether it learned from some of the stays.
        notes: What else is on record of it.
    """

    deployed: Deployed
    drawn: Deployed | None = None
    in_sample: bool = False
    notes: Mapping[str, str] = field(default_factory=dict)


def as_fitted(policy: Policy) -> FittedPolicy | None:
    """The fitted policy of ours that this is, or that this learner learned; None of any other."""
    own = policy.fitted_policy() if isinstance(policy, Learner) else policy
    return own if isinstance(own, FittedPolicy) else None


def follow(policy: Policy, data: Trajectories) -> Followed:
    """Follow a policy. One that is not ours is its probabilities: nothing else is known of it."""
    if isinstance(policy, WrittenRule):
        return Followed(policy.deployed(data), notes={RULE: policy.text})
    own = as_fitted(policy)
    if own is None:
        return Followed(Deployed.always(np.asarray(policy.predict_proba(data), np.float64)))
    answer = own.answer(data)
    deployed = own.deploy(answer)
    same = np.array_equal(deployed.probabilities, answer.probabilities)
    return Followed(deployed, None if same else Deployed(*answer))


def as_followed(policy: Floats | Deployed | Followed) -> Followed:
    """What comes of following a policy; an array holds the probabilities that it draws from."""
    return policy if isinstance(policy, Followed) else Followed(as_deployed(policy))


def true_risk(policy: Deployed, data: Trajectories) -> float | None:
    """The true risk, where it is known: where it abstains the clinicians do what they do."""
    if data.truth is None:
        return None
    return data.true_risk(policy.left_to(data.true_logging()))
