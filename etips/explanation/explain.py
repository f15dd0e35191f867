"""`etips.explain`: why a policy recommends what it does, for a stay, on the whole, as rules."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from etips.data.splitting import held_out
from etips.data.trajectories import Trajectories
from etips.disclosure import LEAST_PEOPLE
from etips.errors import DataError, SettingError
from etips.explanation.attribution import agree, attribute_overall
from etips.explanation.explanation_file import Explanation
from etips.explanation.policy_tree import PolicyTree, TreeReport, report_tree
from etips.explanation.preference import reads_features
from etips.explanation.similar import Neighbourhood
from etips.explanation.stay_explanation import explain_stay, find_stay
from etips.learn.learners.learner import Learner
from etips.learn.training.epoch_report import Report
from etips.policies.policy import FittedPolicy
from etips.results.evaluation_log import Models
from etips.runs.folder import RunFolder

JUDGED_SHARE = 1 / 3
"""Of the stays on which rules are judged, where no run records which it was kept from."""


def explain(
    policy: FittedPolicy | Learner | str | Path,
    data: Trajectories,
    *,
    stay: object = None,
    log: Trajectories | None = None,
    also: Sequence[FittedPolicy | Learner | str | Path] = (),
    tree: bool = False,
    depth: int = 3,
    models: Models | None = None,
    seed: int = 0,
    report: Report | None = None,
) -> Explanation:
    """Say why a policy recommends what it does.

    Args:
        policy: Fitted, or the folder of a run or a policy.
        data: Stays, as the policy was fitted on.
        stay: The stay that is asked about, as the data calls it; left out, all of them.
        log: Logged stays whose decisions are compared; `data` itself if left out and logged.
        also: The same method under other seeds, to see what changes.
        tree: Also learn the policy as rules from two thirds of the stays and judge them on the
            rest; of a run that was fitted with a share held out, on that share.
        depth: Questions in a row that rules may ask, 1 to 4.
        models: How the log of the rules is weighed.
        seed: Of what is drawn.
        report: Called after every epoch of what is fitted.
    """
    own, share = _opened(policy)
    if stay is not None:
        compared, neighbours = data if log is None else log, None
        if compared.logged and compared.n_decisions and reads_features(own):
            neighbours = Neighbourhood.of(own, compared, seed=seed)
        found = Explanation(stay=explain_stay(own, find_stay(data, stay), neighbours))
    elif reads_features(own):
        others = [_opened(other)[0] for other in also]
        overall = [attribute_overall(one, data, seed=seed) for one in (own, *others)]
        seeds = agree([one.strengths() for one in overall]) if others else None
        found = Explanation(overall=overall[0], seeds=seeds)
    elif own.tree is not None:
        found = Explanation(rules=tuple(own.tree.rules(own.schema)))
    elif tree:
        found = Explanation()
    else:
        rule = "gives everybody the same answer: there is nothing to explain"
        fix = "Rules may be learned all the same: tree=True (--tree)."
        raise SettingError("policy", rule, fix=fix)
    if not tree:
        return found
    rules = PolicyTree(depth=depth, models=models, seed=seed)
    return replace(found, tree=_judged(rules, own, data, share, report))


def _opened(policy: FittedPolicy | Learner | str | Path) -> tuple[FittedPolicy, float | None]:
    """The policy, and the share of the stays that its run was kept from."""
    if isinstance(policy, str | Path):
        folder = RunFolder(Path(policy))
        return folder.open_policy(), folder.read_hold_out()
    given: object = policy.fitted_policy() if isinstance(policy, Learner) else policy
    if isinstance(given, FittedPolicy):
        return given, None
    fix = "A rule that somebody wrote explains itself."
    raise SettingError("policy", "must be one that etips fitted", fix=fix)


def _judged(
    tree: PolicyTree,
    policy: FittedPolicy,
    data: Trajectories,
    share: float | None,
    report: Report | None,
) -> TreeReport:
    """Rules learned from some of the stays and judged on the others."""
    if not data.logged:
        raise DataError("data", "must hold a log to learn rules from")
    apart = held_out(data, share or JUDGED_SHARE)
    if min(len(np.unique(data.units[stays])) for stays in (apart, ~apart)) < LEAST_PEOPLE:
        rule = f"must be of {LEAST_PEOPLE} people or more to learn rules from, and to judge them by"
        raise DataError("data", rule)
    source = "the stays that the run was kept from"
    if share is None:
        source = "a third of the stays, which the rules were not learned from"
    fitted, judged = tree.fit(policy, data.subset(~apart), report=report), data.subset(apart)
    return report_tree(fitted, policy, judged, source=source, models=tree.models, report=report)
