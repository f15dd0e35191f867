"""What a learner learned."""

from dataclasses import dataclass

from etips.evaluation.reweighting.rebalance import Rebalanced
from etips.learn.fitting.candidates import Candidate
from etips.learn.nuisance.outcome import FittedOutcome
from etips.learn.nuisance.propensity import FittedPropensity, Quality
from etips.policies.policy import FittedPolicy


@dataclass(frozen=True, eq=False)
class Fit:
    """What a learner learned; its attributes that end in an underscore are taken from here.

    Args:
        policy: What it recommends.
        propensity: Networks that imitate the clinicians; None if it fits none.
        outcome: Networks that predict losses; None if it fits none.
        path: Every candidate it chose from; empty if it compares none.
        quality: How well the propensities fit; None if it fits none.
        support: Least propensity of a recommended action; None if it has no such floor.
        whole_stay: The outcome of held-out stays in which a policy that looks that far decides for
            as long as the log can tell, and the clinicians afterwards; None of any other policy.
        clipped_share: Share of decisions whose propensity was raised; None if it weighs none.
        rebalanced: What balancing did to the logged propensities; None where it was not tried.
    """

    policy: FittedPolicy
    propensity: FittedPropensity | None = None
    outcome: FittedOutcome | None = None
    path: tuple[Candidate, ...] = ()
    quality: Quality | None = None
    support: float | None = None
    clipped_share: float | None = None
    whole_stay: Candidate | None = None
    rebalanced: Rebalanced | None = None
