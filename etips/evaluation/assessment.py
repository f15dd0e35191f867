"""Everything the evaluation says about one policy, from one log."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from etips.errors import SettingError
from etips.evaluation.contrast import Contrast, MatchedContrast, atenp
from etips.evaluation.diagnostics import Diagnostics, diagnose, gain
from etips.evaluation.estimate import Estimate
from etips.evaluation.intervals import DEFAULT, Interval
from etips.evaluation.log import Log, View, view
from etips.evaluation.risk import (
    clipped_ips,
    dm,
    dr,
    dr_shrinkage,
    ips,
    sndr,
    snips,
    switch_dr,
)
from etips.evaluation.verdict import Verdict, judge

WEIGHTED: Mapping[str, Callable[..., Estimate]] = {
    "snips": snips,
    "ips": ips,
    "clipped_ips": clipped_ips,
}
MODELLED: Mapping[str, Callable[..., Estimate]] = {
    "dr": dr,
    "sndr": sndr,
    "switch_dr": switch_dr,
    "dr_shrinkage": dr_shrinkage,
}


@dataclass(frozen=True)
class Assessment:
    """Estimates, gain, diagnosis and verdict of one policy.

    Args:
        estimates: One entry an estimator, the first the headline.
        gain: The headline minus the clinicians' risk, paired.
        matched: Matched against unmatched decisions.
        diagnostics: What the verdict looked at.
        verdict: Show no number without it unless its label is "reliable".
    """

    estimates: tuple[Estimate, ...]
    gain: Contrast
    matched: MatchedContrast
    diagnostics: Diagnostics
    verdict: Verdict


def assess(
    log: Log,
    probabilities: ArrayLike,
    *,
    estimators: Sequence[str] = (),
    interval: Interval = DEFAULT,
) -> Assessment:
    """Evaluate the policy that has these `probabilities` at the decisions of `log`.

    Args:
        log: The decisions; none of their stays may have served to learn or select the policy.
        probabilities: The policy's distribution at each decision, shape (n, n_actions).
        estimators: Names as in `estimator_names`, the headline first; all of them if left out.
        interval: How the limits are made.
    """
    policy = view(log, probabilities)
    names = tuple(estimators) or estimator_names(log)
    estimates = tuple(_estimate(name, log, policy, interval) for name in names)
    diagnostics = diagnose(log, policy, interval=interval)
    return Assessment(
        estimates=estimates,
        gain=gain(log, estimates[0], interval=interval),
        matched=atenp(log.loss, log.action, policy.probabilities, log.clusters, interval=interval),
        diagnostics=diagnostics,
        verdict=judge(diagnostics),
    )


def estimator_names(log: Log) -> tuple[str, ...]:
    """Estimators that `log` allows, the default headline first: SNIPS, which needs no model."""
    return (*WEIGHTED, *(() if log.predicted is None else ("dm", *MODELLED)))


def _estimate(name: str, log: Log, policy: View, interval: Interval) -> Estimate:
    if name not in estimator_names(log):
        raise SettingError("estimators", f"must be among {', '.join(estimator_names(log))}")
    cluster = log.clusters
    if name == "dm":
        assert policy.predicted_policy is not None
        return dm(policy.predicted_policy, cluster, interval=interval)
    if name in WEIGHTED:
        return WEIGHTED[name](log.loss, policy.weight, cluster, interval=interval)
    return MODELLED[name](
        log.loss,
        policy.weight,
        cluster,
        predicted=policy.predicted,
        predicted_policy=policy.predicted_policy,
        interval=interval,
    )
