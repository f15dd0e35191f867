"""Everything the evaluation says about one policy, from one log."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from etips.errors import DataError, SettingError
from etips.evaluation.diagnostics import Diagnostics, diagnose, gain
from etips.evaluation.estimators import find_estimators
from etips.evaluation.inference.betting import guaranteed_gain
from etips.evaluation.inference.checks import Bools, Floats
from etips.evaluation.inference.estimate import (
    Contrast,
    Estimate,
    MatchedContrast,
    atenp,
    difference,
)
from etips.evaluation.inference.intervals import DEFAULT, Interval, Wald
from etips.evaluation.log import Log, View, view
from etips.evaluation.risk import logged_risk, snips
from etips.evaluation.verdict import Verdict, judge


@dataclass(frozen=True)
class Assessment:
    """Estimates, gain, diagnosis and verdict of one policy.

    Args:
        gain: The headline minus the clinicians' risk, paired.
        verdict: Show no number without it unless its label is "reliable".
        guaranteed: The greatest gain that is not excluded, without any approximation; None where a
            loss lies outside 0..1. See `guaranteed_gain`.
        policy: As it is seen through the log.
    """

    estimates: tuple[Estimate, ...]
    gain: Contrast
    matched: MatchedContrast
    diagnostics: Diagnostics
    verdict: Verdict
    guaranteed: float | None = None
    policy: View = field(repr=False, compare=False, kw_only=True)


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
        probabilities: The policy's distribution at each decision, shape (n, n_actions).
        abstains: Where it leaves the decision to the clinicians, as in `view`, shape (n,).
        estimators: Names as in `estimator_names`, the headline first; all of them if left out.
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
        policy=policy,
    )


def assess_part(
    part: Log, policy: View, inside: Bools, *, estimator: str, interval: Interval = DEFAULT
) -> Assessment:
    """The policy at some decisions of a log: `part` is what `log.take(inside)` gives."""
    silent = None if policy.abstains is None else policy.abstains[inside]
    table = policy.probabilities[inside]
    return assess(part, table, silent, estimators=(estimator,), interval=interval)


SUPPORTS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)


@dataclass(frozen=True)
class AbstentionPoint:
    """The policy that leaves a decision to the clinicians when support is lacking.

    Args:
        support: Least propensity its likeliest action must have for it to speak.
        coverage: Share of decisions at which it speaks.
    """

    support: float
    coverage: float
    n_abstained: int
    risk: Estimate
    gain: Contrast


def abstention_curve(
    log: Log, policy: View, *, supports: Sequence[float] = SUPPORTS, interval: Interval = DEFAULT
) -> tuple[AbstentionPoint, ...]:
    """One point for each of `supports`, rising; needs `log.propensities`.

    Do not choose the support by the lowest risk on this curve and report that risk: choose it on
    other stays.

    Args:
        supports: Least propensities to try.
    """
    if log.propensities is None:
        raise DataError("propensities", "must be given for every action to say where to abstain")
    if not supports or not all(0 <= support <= 1 for support in supports):
        raise SettingError("supports", "must be one or more numbers from 0 to 1")
    known = log.propensities[log.rows, policy.recommended]
    clinicians, points = logged_risk(log.loss, log.clusters), []
    for support in sorted(supports):
        speaks = known >= support
        if policy.abstains is not None:
            speaks &= ~policy.abstains
        weight = np.where(speaks, policy.weight, 1.0)  # the clinicians' under their own policy
        risk = snips(log.loss, weight, log.clusters, interval=interval)
        gain = difference(risk, clinicians, interval=interval)
        n_abstained = int((~speaks).sum())
        points.append(AbstentionPoint(support, float(speaks.mean()), n_abstained, risk, gain))
    return tuple(points)


CONTROL_LEVEL = 0.99
"""One false alarm in a hundred: it makes a verdict doubtful."""


@dataclass(frozen=True)
class NegativeControl:
    """The "gain" in a negative control.

    Args:
        spread: Standard deviation of the control.
    """

    difference: float
    std_error: float
    low: float
    high: float
    spread: float

    @property
    def warning(self) -> bool:
        """Whether zero, which it should be, is outside the interval."""
        return bool(self.low > 0 or self.high < 0)


def control_gain(log: Log, policy: View, control: Floats) -> NegativeControl:
    """Treat `control` as the loss; decisions where it is not known take no part.

    Args:
        control: Something measured before each action, NaN where not known, shape (n,).
    """
    values = np.asarray(control, dtype=np.float64)
    if values.shape != (log.n_decisions,):
        raise DataError("negative_control", "must have one entry a decision")
    known = np.isfinite(values)
    if np.unique(log.clusters.code[known]).size < 2:
        fix = "Does the column hold numbers at the steps of decisions?"
        raise DataError("negative_control", "must be known in two clusters at least", fix=fix)
    cluster, weight, losses = log.cluster[known], policy.weight[known], values[known]
    interval = Wald(CONTROL_LEVEL)
    weighted = snips(losses, weight, cluster, interval=interval)
    gain = difference(weighted, logged_risk(losses, cluster, interval=interval), interval=interval)
    spread = float(losses.std())
    return NegativeControl(gain.difference, gain.std_error, gain.low, gain.high, spread)
