"""The policy as rules, judged: what the log says of them as a whole and of every leaf."""

from dataclasses import asdict, dataclass, replace

import numpy as np

from etips.data.decisions import Bools
from etips.data.trajectories import Trajectories
from etips.disclosure import hide_together, shown_parts
from etips.evaluation.assessment import assess
from etips.evaluation.censoring import complete_losses
from etips.evaluation.log import Log
from etips.explanation.policy_tree import PolicyTree
from etips.learn.training.epoch_report import Report
from etips.policies.deployed import Deployed
from etips.policies.policy import FittedPolicy
from etips.results.evaluate import assess_policies
from etips.results.evaluation_log import Models, make_log
from etips.results.followed_policies import follow_unseen, require_unseen_stays
from etips.results.records import MethodResult

RULES, NETWORK = "the rules", "the policy"
"""What results call the two."""


@dataclass(frozen=True)
class LeafReport:
    """One rule and what the log says of it; of fewer than eleven people nothing but the rule.

    Args:
        rule: In words.
        action: What it recommends.
        share: Of the judged decisions; None here and below where it would tell of a few.
        followed: Share of these at which the logged action is the rule's.
        agreement: Share of these at which the policy recommends the same.
        logged_loss: Mean loss of what clinicians did there.
        risk: Of following the rule there.
        low: Lower limit.
        high: Upper limit.
        verdict: Whether to believe it.
    """

    rule: str
    action: str
    share: float | None = None
    followed: float | None = None
    agreement: float | None = None
    logged_loss: float | None = None
    risk: float | None = None
    low: float | None = None
    high: float | None = None
    verdict: str | None = None


@dataclass(frozen=True, eq=False)
class TreeReport:
    """The policy as rules.

    Args:
        tree: The rules themselves.
        leaves: One a rule.
        agreement: Share of the judged decisions at which rules and policy recommend the same.
        methods: What the log says of the rules and of the policy they stand beside.
        judged: Where the judged stays come from, in words.
    """

    tree: PolicyTree
    leaves: tuple[LeafReport, ...]
    agreement: float | None
    methods: tuple[MethodResult, ...]
    judged: str

    def to_json(self) -> dict[str, object]:
        """JSON-ready."""
        return {
            **self.tree.to_json(),
            "leaves": [asdict(leaf) for leaf in self.leaves],
            "agreement": self.agreement,
            "judged": self.judged,
            "estimates": [
                {
                    "name": own.name,
                    "verdict": own.verdict,
                    "reasons": list(own.reasons),
                    "risk": own.estimates[0].risk,
                    "low": own.estimates[0].low,
                    "high": own.estimates[0].high,
                    "gain": None if own.gain is None else own.gain.difference,
                    "truth": own.truth,
                    "in_sample": own.in_sample,
                }
                for own in self.methods
            ],
        }


def report_tree(
    tree: PolicyTree,
    policy: FittedPolicy,
    judged: Trajectories,
    *,
    told: str,
    models: Models | None = None,
    report: Report | None = None,
) -> TreeReport:
    """Judge rules beside the policy on stays that the rules were not learned from.

    If the policy learned from these stays, its estimate says so. `told` is where they come from, in
    words.
    """
    rules = tree.fitted_policy()
    require_unseen_stays({RULES: rules}, judged)
    judged = complete_losses(judged)
    named = {RULES: rules, NETWORK: policy}
    seen = require_unseen_stays(named, judged, allow_seen=True)
    followed = follow_unseen(named, judged, seen)
    made = make_log(named, judged, models or Models(), report=report)
    methods = assess_policies(followed, made.log, judged, notes=made.notes)
    same = rules.predict(judged) == policy.predict(judged)
    leaves = _leaves(tree, judged, made.log, followed[RULES].deployed, same)
    n_same = int(same.sum())
    shown = None in shown_parts(n_same, len(same) - n_same)
    return TreeReport(tree, leaves, None if shown else float(same.mean()), methods, told)


def _leaves(
    tree: PolicyTree, judged: Trajectories, log: Log, does: Deployed, same: Bools
) -> tuple[LeafReport, ...]:
    """What the log says of each rule."""
    leaf, schema = tree.apply(judged), tree.fitted_policy().schema
    places = tree.tree.leaves
    inside = [leaf == place for place in places]
    people = np.array([len(np.unique(judged.cluster[own])) for own in inside])
    hidden = hide_together(people, np.array([own.sum() for own in inside]))
    reports = []
    for place, rule, own, gone in zip(places, tree.rules(), inside, hidden, strict=True):
        action = int(tree.tree.action[place])
        report = LeafReport(rule, schema.action_name(action))
        if own.any() and not gone:
            report = _leaf(report, action, own, log, does, same)
        reports.append(report)
    return tuple(reports)


def _leaf(
    bare: LeafReport, action: int, inside: Bools, log: Log, does: Deployed, same: Bools
) -> LeafReport:
    """What the log says of a rule that enough people meet."""
    part = log.take(inside)
    judged = assess(part, does.probabilities[inside], does.abstained[inside])
    head, loss = judged.estimates[0], part.loss
    events = int(loss.sum()) if np.isin(loss, (0, 1)).all() else len(loss)
    told = None not in shown_parts(events, len(loss) - events)
    figures = (float(loss.mean()), head.risk, head.low, head.high)
    logged_loss, risk, low, high = (
        value if told and np.isfinite(value) else None for value in figures
    )
    return replace(
        bare,
        share=float(inside.mean()),
        followed=_share(part.action == action),
        agreement=_share(same[inside]),
        verdict=judged.verdict.label,
        logged_loss=logged_loss,
        risk=risk,
        low=low,
        high=high,
    )


def _share(holds: Bools) -> float | None:
    """A share, unless it counts a few."""
    n = int(holds.sum())
    return None if None in shown_parts(n, len(holds) - n) else float(holds.mean())
