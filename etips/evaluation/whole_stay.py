"""What would the outcome of stays be, had the policy decided throughout?

Three answers from one log: ratios of whole stays (per-decision weighted importance sampling), a
model (fitted Q evaluation), and the model corrected by the ratios (weighted doubly robust, Thomas
and Brunskill 2016), the headline. All are signed sums of ratios of cluster totals, so that standard
errors, paired gains and intervals come from the algebra of one decision.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from etips.evaluation.inference.checks import (
    Bools,
    Clusters,
    Floats,
    check_numbers,
    check_weights,
    code_clusters,
)
from etips.evaluation.inference.estimate import Contrast, Estimate
from etips.evaluation.inference.evidence import Bounds, Evidence
from etips.evaluation.inference.intervals import DEFAULT, Interval
from etips.evaluation.verdict import CHANCE, STAY_RULES, Verdict, beyond_chance, judge_by
from etips.evaluation.whole_stay_course import Course, Ratios, make_ratios


@dataclass(frozen=True)
class StayDiagnosis:
    """How far a log can speak of a policy that decides throughout.

    Args:
        effective_stays: What the ratios are worth in stays, at the last decision they correct.
        effective_events: The same times the share of the rarer outcome; None for amounts.
        heaviest_stay: Share of the ratios that the heaviest stay or patient has there.
        ratio_error: How far the mean ratio is from 1 there, before the cap; 0 while chance may have
            done it.
        weight_shift: What ratios move predicted outcomes by that should not move, over half the
            width of the narrower interval; 0 while chance may have done it, None without a model.
        capped_share: Share of the ratios at the end of stays that the cap took off.
        uncorrected_share: Share of the logged decisions that come after the last corrected one.
        n_corrected: Decisions of a stay, from its first, that ratios correct.
    """

    effective_stays: float
    effective_events: float | None
    heaviest_stay: float
    ratio_error: float
    weight_shift: float | None
    capped_share: float
    uncorrected_share: float
    n_corrected: int
    longest: int


HEADLINE = "wdr"

MODEL_ERRORS = 2.5
"""Standard errors of a model that are allowed for where nothing corrects it: they come from a few
folds, and so are known badly themselves."""


@dataclass(frozen=True)
class Cautious:
    """Symmetric limits that know on how few stays the standard error itself rests.

    Degrees of freedom are half the effective number of clusters in the sum of squared influences: a
    few stays with large ratios make most of it, and a log that lacks them has a low estimate of its
    own error. Never narrower than the default of one decision.

    Args:
        least_error: A standard error that rests on all stays; reach is no less than it allows.
    """

    level: float = 0.95
    least_error: float = 0.0

    def __call__(self, evidence: Evidence) -> Bounds:
        """Limits within the bounds."""
        least, most = evidence.bounds or (-math.inf, math.inf)
        if not math.isfinite(evidence.std_error):
            return least, most
        squares = evidence.jackknife**2
        fourth = float((squares**2).sum())
        freedom = max(float(squares.sum()) ** 2 / fourth / 2, 2.0) if fourth > 0 else 2.0
        share = (1 + self.level) / 2
        reach = evidence.std_error * float(special.stdtrit(freedom, share))
        reach = max(reach, -self.least_error * float(special.ndtri(1 - share)))
        low, high = DEFAULT(evidence)
        low, high = min(low, evidence.value - reach), max(high, evidence.value + reach)
        return max(low, least), min(high, most)


@dataclass(frozen=True, eq=False)
class StayLog:
    """Stays as a policy sees them, checked when made.

    Args:
        cluster: Patient of each decision, shape (n,).
        value: Predicted outcome still to come before each decision, the policy deciding, shape
            (n,); None without a model.
        taken: The same after the logged action, shape (n,).
        model_error: Standard error of the mean predicted outcome from which stays the model was
            fitted on, where that is known.
    """

    course: Course
    weight: Floats
    cluster: NDArray[Any]
    value: Floats | None = None
    taken: Floats | None = None
    model_error: float = 0.0

    def __post_init__(self) -> None:
        n = self.course.stay.size
        check_weights("weight", self.weight, n=n)
        for name in ("value", "taken"):
            if getattr(self, name) is not None:
                check_numbers(name, getattr(self, name), n=n)

    @cached_property
    def clusters(self) -> Clusters:
        """The patient of each stay."""
        return code_clusters(np.asarray(self.cluster)[self.course.first], n=self.course.n_stays)

    @cached_property
    def ratios(self) -> Ratios:
        """How much each stay speaks for the policy."""
        return make_ratios(self.course, self.weight, self.clusters)

    @property
    def bounds(self) -> Bounds | None:
        """Where the outcome of a stay must lie."""
        return (0.0, 1.0) if self.course.is_share else None

    @property
    def surprise(self) -> Floats:
        """What each decision added, and left to come, beyond what was predicted, shape (n,)."""
        assert self.value is not None
        assert self.taken is not None
        later = np.where(self.course.ends, 0.0, np.append(self.value[1:], 0.0))
        return np.asarray(self.course.charge + later - self.taken)


@dataclass(frozen=True)
class StayAssessment:
    """What a log says of a policy that decides throughout.

    Args:
        gain: Of the first estimate, the headline. It has no p-value of its own.
        better: Whether the gain lies below zero, allowing for all policies looked at.
    """

    estimates: tuple[Estimate, ...]
    clinicians: Estimate
    gain: Contrast
    better: bool
    diagnosis: StayDiagnosis
    verdict: Verdict


def assess_stays(log: StayLog, *, level: float = 0.95, n_policies: int = 1) -> StayAssessment:
    """Estimate the outcome of stays under a policy, beside that under the clinicians.

    Without a model the headline is the one of ratios.

    Args:
        n_policies: How many are looked at; each makes a lucky one likelier, so that "better" asks
            for an interval below zero at a level that allows for all (Bonferroni).
    """
    least, slack = 0.0, 0.0
    makers = {"pdwis": pdwis}
    if log.value is not None:
        least, slack = usual_error(log), allowance(log)
        makers = {"wdr": wdr, "fqe": fqe, "pdwis": pdwis}
    limits, strict = Cautious(level, least), Cautious(1 - (1 - level) / n_policies, least)
    estimates = tuple(
        _estimate(log, name, make(log), limits, slack)
        if name == HEADLINE
        else _estimate(log, name, make(log), Cautious(level), 0.0)
        for name, make in makers.items()
    )
    clinicians = _estimate(log, "logged", logged(log), DEFAULT, 0.0)
    headline = estimates[0]
    apart = headline.evidence.minus(clinicians.evidence)
    low, high = _widened(limits(apart), slack)
    rounding = 1e-9 * abs(clinicians.risk)  # two ways to add up the same outcomes
    better = bool(_widened(strict(apart), slack)[1] < -rounding)
    name, size = f"{headline.estimator} - logged", (apart.value, apart.std_error)
    gain = Contrast(name, *size, low, high, math.nan, apart.n_clusters, evidence=apart)
    diagnosis = diagnose_stays(log, half_width=min(headline.high - headline.low, high - low) / 2)
    verdict = judge_by(STAY_RULES, vars(diagnosis))
    return StayAssessment(estimates, clinicians, gain, better, diagnosis, verdict)


def logged(log: StayLog) -> Evidence:
    """Mean outcome of the logged stays."""
    return _mean(log, log.course.outcomes)


def fqe(log: StayLog) -> Evidence:
    """Mean predicted outcome under the policy: as good as the model, whose error is not known."""
    assert log.value is not None
    return _mean(log, log.value[log.course.first])


def pdwis(log: StayLog) -> Evidence:
    """Per-decision weighted importance sampling: losses weighed by the ratio so far."""
    ratios = log.ratios.uncut
    return _weighed(log, ratios, log.course.charge, ratios.edges.size - 1)


def wdr(log: StayLog) -> Evidence:
    """Predicted outcome, corrected decision by decision by what the log holds beyond it."""
    return _weighed(log, log.ratios, log.surprise, log.ratios.n_terms, fqe(log))


def usual_error(log: StayLog) -> float:
    """What ratios worth so few stays cost, if their stays surprise as much as all others do.

    A log that happens to lack the stays with the largest ratios has too low an estimate of its own
    error; the surprises of all stays tell what it could have been. Zero where all ratios are alike.
    """
    ratios, n_terms = log.ratios, log.ratios.n_terms
    size = (ratios.plain(log.surprise)[:, :n_terms] ** 2).mean(axis=0)
    excess = 1 / ratios.effective[:n_terms] - 1 / log.clusters.size
    return float(np.sqrt((size * np.maximum(excess, 0.0)).sum()))


def allowance(log: StayLog) -> float:
    """What the decisions that no ratio corrects may hide, in units of the outcome.

    Predictions are taken to be as wrong there, decision for decision, as they were found, or could
    have been, where they are corrected; and as uncertain as the model is. Infinite where nothing is
    corrected; zero where all is.
    """
    ratios, lengths = log.ratios, log.course.lengths
    inside = np.minimum(lengths, ratios.trusted).sum()
    beyond = lengths.sum() - inside
    if beyond == 0:
        return 0.0
    if inside == 0:
        return math.inf
    found = _weighed(log, ratios, log.surprise, ratios.n_terms)
    noise = MODEL_ERRORS * log.model_error * beyond / lengths.sum()
    return float(max(abs(found.value), found.std_error) * beyond / inside + noise)


def imbalance(log: StayLog) -> Evidence:
    """What the ratios move that they should not: zero in expectation if propensities are right.

    Weighed by the ratio before a decision, what the policy is predicted to make of it is the same
    as the prediction after its logged action, weighed by the ratio after it; whatever the model
    predicts. Up to the last corrected decision; the headline less its ratio-weighed losses.
    """
    assert log.value is not None
    final = log.course.ends | (log.course.number + 1 >= log.ratios.trusted)
    later = np.where(final, 0.0, np.append(log.value[1:], 0.0))
    return _weighed(log, log.ratios, later - log.taken, log.ratios.n_terms, fqe(log))


def weight_shift(log: StayLog, half_width: float) -> float | None:
    """The imbalance over half the width of an interval; 0 while chance may have done it.

    None without a model, and where all is left to it.
    """
    if log.value is None or log.ratios.n_terms == 0:
        return None
    found = imbalance(log)
    return beyond_chance(abs(found.value), found.std_error, half_width)


def ratio_error(log: StayLog) -> float:
    """How far the mean ratio, uncut, is from 1 at the last corrected decision.

    0 while chance may have done it.
    """
    n_terms = max(log.ratios.n_terms, 1)
    weight = log.ratios.uncut.below[:, n_terms - 1 : n_terms]
    count = log.clusters.sums(np.ones(log.course.n_stays))[:, None]
    mean = Evidence(weight, count, np.ones(1), log.clusters.ids)
    off = abs(mean.value - 1)
    return 0.0 if off <= CHANCE * mean.std_error else off


def diagnose_stays(log: StayLog, *, half_width: float) -> StayDiagnosis:
    """How far the log can speak of a policy that decides throughout."""
    ratios, lengths = log.ratios, log.course.lengths
    n_terms = max(ratios.n_terms, 1)
    weight = ratios.below[:, n_terms - 1]
    whole = np.exp(np.minimum(ratios.log_ratio[log.course.ends], 700))
    kept, total = float(ratios.last.sum()), float(whole.sum())
    effective = float(ratios.effective[n_terms - 1])
    rarer = None
    if log.bounds is not None:
        usual = float(log.course.outcomes.mean())
        rarer = effective * min(usual, 1 - usual)
    return StayDiagnosis(
        effective_stays=effective,
        effective_events=rarer,
        heaviest_stay=float(weight.max() / weight.sum()) if weight.any() else math.nan,
        ratio_error=ratio_error(log),
        weight_shift=weight_shift(log, half_width),
        capped_share=1 - kept / total if total > 0 else 0.0,
        uncorrected_share=1 - float(np.minimum(lengths, ratios.trusted).sum() / lengths.sum()),
        n_corrected=ratios.trusted,
        longest=int(lengths.max()),
    )


def _mean(log: StayLog, values: Floats) -> Evidence:
    """The mean of `values` (k,) over stays."""
    total, count = (log.clusters.sums(v)[:, None] for v in (values, np.ones(values.size)))
    return Evidence(total, count, np.ones(1), log.clusters.ids, log.bounds)


def _weighed(
    log: StayLog, ratios: Ratios, values: Floats, n_terms: int, start: Evidence | None = None
) -> Evidence:
    """The sum over the first terms of ratio-weighed means of `values` (n,), added to a start."""
    above, below = ratios.above(values)[:, :n_terms], ratios.below[:, :n_terms]
    sign = np.ones(above.shape[1])
    if start is not None:
        above, below = np.hstack([start.numerator, above]), np.hstack([start.denominator, below])
        sign = np.concatenate([start.sign, sign])
    return Evidence(above, below, sign, log.clusters.ids, log.bounds)


def _estimate(
    log: StayLog, name: str, evidence: Evidence, interval: Interval, slack: float
) -> Estimate:
    low, high = _widened(interval(evidence), slack)
    least, most = log.bounds or (-math.inf, math.inf)
    n_stays = log.course.n_stays
    effective = float(log.ratios.effective[max(log.ratios.n_terms, 1) - 1])
    return Estimate(
        estimator=name,
        risk=evidence.value,
        std_error=evidence.std_error,
        low=max(low, least),
        high=min(high, most),
        n_decisions=log.course.stay.size,
        n_clusters=evidence.n_clusters,
        effective_n=float(n_stays) if name in ("logged", "fqe") else effective,
        evidence=evidence,
    )


def _widened(limits: Bounds, slack: float) -> Bounds:
    return limits[0] - slack, limits[1] + slack


def silent_values(
    expected: Floats, probabilities: Floats, action: NDArray[np.int64], abstains: Bools
) -> tuple[Floats, Floats]:
    """Predicted outcomes under the policy and after the logged action, shape (n,) each.

    Where the policy abstains the clinicians decide, and the logged action is what they do.

    Args:
        expected: Predicted outcome still to come after every action, shape (n, n_actions).
        abstains: Where the policy leaves it to the clinicians, shape (n,).
    """
    taken = expected[np.arange(action.size), action]
    value = np.einsum("na,na->n", probabilities, expected)
    return np.where(abstains, taken, value), taken
