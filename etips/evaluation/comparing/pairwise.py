"""Differences between all policies of a study, in pairs on the same stays."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from etips.errors import SettingError
from etips.evaluation.inference.checks import Floats, check_share
from etips.evaluation.inference.contrast import Contrast, difference
from etips.evaluation.inference.estimate import Estimate
from etips.evaluation.inference.evidence import Evidence, ratio_of
from etips.evaluation.inference.improvement import holm
from etips.evaluation.inference.intervals import DEFAULT, Interval, p_of_zero
from etips.evaluation.log import Log, View
from etips.evaluation.prognosis import Expected
from etips.evaluation.prognosis_balance import WITHOUT_MODEL
from etips.evaluation.verdict import GRAVE, IMBALANCE, Label, Verdict

ORDER: tuple[Label, ...] = ("reliable", "doubtful", "unusable")
SHIFT, GRAVE_SHIFT = 0.3, 2.0
"""Half-widths by which weighted patients may differ; as in the verdict's rule on the prognosis."""


@dataclass(frozen=True)
class Pair:
    """Two risks.

    Args:
        first: Name of the one.
        second: Of the other.
        contrast: First minus second, its interval for this pair alone.
        p_value: Two-sided, of no difference: at most 0.05 just where a 95 % interval omits zero.
        adjusted_p: The same after Holm's correction for all pairs asked.
        differs: Whether a difference is shown, at most `alpha` chance of any false one.
    """

    first: str
    second: str
    contrast: Contrast
    p_value: float
    adjusted_p: float
    differs: bool


def compare_pairs(
    estimates: Mapping[str, Estimate],
    *,
    reference: str | None = None,
    interval: Interval = DEFAULT,
    alpha: float = 0.05,
) -> tuple[Pair, ...]:
    """Every difference between two of the risks, or of each to a reference.

    Args:
        estimates: By name, all on the same clusters; at least two.
        reference: Compare the others with this one only, and correct for no more than that.
        interval: How limits are made.
        alpha: Chance of one or more false differences among all pairs.
    """
    check_share("alpha", alpha)
    if len(estimates) < 2:
        raise SettingError("policies", "must be two at least, the clinicians among them")
    pairs = list(_pairs(tuple(estimates), reference))
    contrasts = [difference(estimates[a], estimates[b], interval=interval) for a, b in pairs]
    p_values = np.array([p_of_zero(interval, own.evidence) for own in contrasts])
    adjusted = holm(p_values)
    return tuple(
        Pair(a, b, own, float(p), float(q), bool(q <= alpha))
        for (a, b), own, p, q in zip(pairs, contrasts, p_values, adjusted, strict=True)
    )


def _pairs(names: tuple[str, ...], reference: str | None) -> Iterator[tuple[str, str]]:
    if reference is None:
        yield from combinations(names, 2)
        return
    if reference not in names:
        raise SettingError("reference", f"must be one of {', '.join(names)}")
    yield from ((name, reference) for name in names if name != reference)


def join_verdicts(parts: Mapping[str, Verdict], more: Verdict | None = None) -> Verdict:
    """That of a difference: no better than the worse part, nor than what is said of itself.

    Args:
        parts: Verdict on each of the two risks, by name.
        more: What is said of the difference.
    """
    every = [*parts.values(), *([] if more is None else [more])]
    label = max((own.label for own in every), key=ORDER.index)
    told = [
        f"The risk of {name} is {own.label}."
        for name, own in parts.items()
        if own.label != ORDER[0]
    ]
    return Verdict(label, (*told, *(() if more is None else more.reasons)))


def judge_difference(
    log: Log, first: View, second: View, contrast: Contrast, estimator: str
) -> Verdict:
    """Whether the weighted patients of two policies are alike, held against their difference.

    Two risks that share their patients differ by less than either errs, so that an imbalance which
    neither would notice may be all of their difference.

    Args:
        log: The decisions.
        first: The one policy, seen through them.
        second: The other.
        contrast: Their difference.
        estimator: What both risks are estimated by.
    """
    expected = log.expected if estimator in WITHOUT_MODEL else log.expected_residual
    half_width = (contrast.high - contrast.low) / 2
    if expected is None or not half_width > 0:
        return Verdict("reliable", ())
    worst, label = 0.0, ORDER[0]
    for evidence in _imbalances(log, first, second, expected):
        size, error = abs(evidence.value), evidence.std_error
        z = size / error if error > 1e-12 else 0.0
        share = size / half_width
        if not (z > IMBALANCE and share > SHIFT) or share <= worst:
            continue
        grave = z > GRAVE and share > GRAVE_SHIFT
        worst, label = share, "unusable" if grave or label == ORDER[2] else "doubtful"
    if label == ORDER[0] or math.isnan(worst):
        return Verdict("reliable", ())
    reason = (
        "The patients that speak for the one and for the other were unlike in what was to be "
        f"expected of them, by {worst:.1f} times half the interval's width."
    )
    return Verdict(label, (reason,))


def _imbalances(log: Log, first: View, second: View, expected: Expected) -> Iterator[Evidence]:
    """Weighted means of the expected loss, first minus second; by action too."""
    own = expected.by_action[log.rows, log.action].astype(np.float64)
    plain = [(view.weight * expected.plain, view.weight) for view in (first, second)]
    if all(view.weight.any() for view in (first, second)):
        yield ratio_of(log.clusters, plain, sign=(1.0, -1.0))
        terms = []
        for view in (first, second):
            terms.append((view.weight * own, view.weight))
            terms.append((_averaged(view, expected, own), np.ones(own.size)))
        yield ratio_of(log.clusters, terms, sign=(1.0, -1.0, -1.0, 1.0))


def _averaged(view: View, expected: Expected, own: Floats) -> Floats:
    mean = np.einsum("na,na->n", view.probabilities, expected.by_action)
    return mean if view.abstains is None else np.where(view.abstains, own, mean)
