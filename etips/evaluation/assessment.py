"""Everything the evaluation says about one policy, from one log."""

from collections.abc import Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from etips.evaluation.diagnostics import Diagnostics, diagnose, gain
from etips.evaluation.estimators import find_estimators
from etips.evaluation.inference.betting import guaranteed_gain
from etips.evaluation.inference.contrast import Contrast, MatchedContrast, atenp
from etips.evaluation.inference.estimate import Estimate
from etips.evaluation.inference.intervals import DEFAULT, Interval
from etips.evaluation.log import Log, view
from etips.evaluation.verdict import Verdict, judge


@dataclass(frozen=True)
class Assessment:
    """Estimates, gain, diagnosis and verdict of one policy.

    Args:
        estimates: One entry an estimator, the first the headline.
        gain: The headline minus the clinicians' risk, paired.
        matched: Matched against unmatched decisions.
        diagnostics: What the verdict looked at.
        verdict: Show no number without it unless its label is "reliable".
        guaranteed: The greatest gain that is not excluded, without any approximation; None where a
            loss lies outside 0..1. See `guaranteed_gain`.
    """

    estimates: tuple[Estimate, ...]
    gain: Contrast
    matched: MatchedContrast
    diagnostics: Diagnostics
    verdict: Verdict
    guaranteed: float | None = None


def assess(
    log: Log,
    probabilities: ArrayLike,
    abstains: ArrayLike | None = None,
    *,
    estimators: Sequence[str] = (),
    interval: Interval = DEFAULT,
) -> Assessment:
    """Evaluate the policy that has these `probabilities` at the decisions of `log`.

    Args:
        log: The decisions; none of their stays may have served to learn or select the policy.
        probabilities: The policy's distribution at each decision, shape (n, n_actions).
        abstains: Where it leaves the decision to the clinicians, as in `view`, shape (n,).
        estimators: Names as in `estimator_names`, the headline first; all of them if left out.
        interval: How the limits are made.
    """
    policy = view(log, probabilities, abstains)
    chosen = find_estimators(tuple(estimators), log)
    estimates = tuple(entry.estimate(log, policy, interval=interval) for entry in chosen)
    diagnostics = diagnose(log, policy, interval=interval, headline=estimates[0])
    return Assessment(
        estimates=estimates,
        gain=gain(log, estimates[0], interval=interval),
        matched=atenp(log.loss, log.action, policy.probabilities, log.clusters, interval=interval),
        diagnostics=diagnostics,
        verdict=judge(diagnostics),
        guaranteed=guaranteed_gain(log.loss, policy.weight, log.clusters),
    )
