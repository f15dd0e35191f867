"""Whether the weighted patients had the same prognosis as all patients."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from etips.evaluation.calibration import CERTAIN, LEAST_TAKEN
from etips.evaluation.inference.checks import Floats, totals
from etips.evaluation.inference.estimate import Estimate
from etips.evaluation.inference.evidence import divide, ratio_of
from etips.evaluation.log import Log, View
from etips.evaluation.prognosis import Expected

MOST_WIDENED = 1.4
"""With right propensities and heavy weights the ratio to the sample's own error had a standard
deviation of 1.25, not 1; where the tail expects far more than that, other rules speak."""

WITHOUT_MODEL = ("snips", "ips", "clipped_ips")


@dataclass(frozen=True)
class PrognosisBalance:
    """Weighted minus plain mean of what losses were to be expected.

    Args:
        difference: In units of the loss; below zero the weighted patients had the better prognosis.
        std_error: By cluster; up to 1.4 times that where the propensities of all actions lead to
            expect more: heavy weights that did not occur leave no trace in the sample.
        z: Their ratio; 0 where both are.
        half_width_share: Size of the difference over half the width of the interval it is held
            against.
    """

    difference: float
    std_error: float
    z: float
    half_width_share: float


@dataclass(frozen=True)
class PrognosisBalances:
    """The balance of the prognosis, and of what it takes apart.

    Args:
        plain: Of the expected loss, whatever is done.
        by_action: Of the expected loss of each action, against the policy's mean of it.
        rest: As `plain`, of what the predicted losses leave; None where the headline uses none.
        rest_by_action: As `by_action`, likewise.
        selection: Largest difference between what was to be expected of the patients who got an
            action and of those who should have, as stated, over the half-width; 0 for chance. It
            is about the propensities, whatever the policy does where it speaks; None without those
            of every action.
    """

    plain: PrognosisBalance
    by_action: PrognosisBalance
    rest: PrognosisBalance | None = None
    rest_by_action: PrognosisBalance | None = None
    selection: float | None = None


def balance_prognosis(
    log: Log, policy: View, headline: Estimate, half_width: float
) -> PrognosisBalances | None:
    """Compare weighted with plain means of the prognosis; None without features or any weight.

    Args:
        half_width: Of the interval that a bias matters against.
    """
    if log.expected is None or not policy.weight.any() or not math.isfinite(half_width):
        return None
    plain, by_action = _both(log, policy, log.expected, half_width)
    left = None if headline.estimator in WITHOUT_MODEL else log.expected_residual
    if left is None:
        return PrognosisBalances(
            plain, by_action, selection=_selection(log, policy, log.expected, half_width)
        )
    rest, rest_by_action = _both(log, policy, left, half_width)
    selection = _selection(log, policy, left, half_width)
    return PrognosisBalances(plain, by_action, rest, rest_by_action, selection)


def _selection(log: Log, policy: View, expected: Expected, half_width: float) -> float | None:
    """How unlike the stated ones those are who got an action: the worst action counts.

    A model that misses a reason for some actions is not to be trusted with the others. How far
    chance may go follows from the stated propensities.
    """
    if log.propensities is None:
        return None
    table = log.propensities
    due = table.sum(axis=0)
    mean = divide((table * expected.by_action).sum(axis=0), due)
    apart = expected.by_action - mean
    spread = np.sqrt((table * (1 - table) * apart**2).sum(axis=0))
    got = totals(log.action, apart[log.rows, log.action].astype(np.float64), log.n_actions)
    certain = (np.abs(got) > CERTAIN * spread) & (due >= LEAST_TAKEN)
    worst = float(np.abs(divide(got, due))[certain].max(initial=0.0))
    speaks = 1.0 if policy.abstains is None else 1 - float(policy.abstains.mean())
    return _share(speaks * worst, half_width)


def _share(size: float, half_width: float) -> float:
    if size == 0:
        return 0.0
    return size / half_width if half_width > 0 else math.inf


def _both(
    log: Log, policy: View, expected: Expected, half_width: float
) -> tuple[PrognosisBalance, PrognosisBalance]:
    own = expected.by_action[log.rows, log.action].astype(np.float64)
    averaged = np.einsum("na,na->n", policy.probabilities, expected.by_action)
    if policy.abstains is not None:
        averaged = np.where(policy.abstains, own, averaged)
    plain = expected.plain
    alike = np.broadcast_to(plain[:, None], expected.by_action.shape)
    return (
        _compare(log, policy.weight, plain, plain, half_width, _chance(log, policy, alike)),
        _compare(
            log, policy.weight, own, averaged, half_width, _chance(log, policy, expected.by_action)
        ),
    )


def _chance(log: Log, policy: View, table: NDArray[np.floating[Any]]) -> float:
    """Standard error that the propensities of all actions lead to expect; 0 where they are not."""
    if log.propensities is None:
        return 0.0
    used = np.maximum(log.propensities, max(log.propensity_floor, np.finfo(float).tiny))
    probability = policy.probabilities
    centred = table - float((probability * table).sum(axis=1).mean())
    taken = log.propensities / used  # an action that is never taken adds nothing
    square = (taken * (probability**2 / used) * centred**2).sum(axis=1)
    noise = square - (probability * log.propensities / used * centred).sum(axis=1) ** 2
    if policy.abstains is not None:
        noise = np.where(policy.abstains, 0.0, noise)
    return float(np.sqrt(max(noise.sum(), 0.0))) / log.n_decisions


def _compare(
    log: Log, weight: Floats, weighted: Floats, plain: Floats, half_width: float, chance: float
) -> PrognosisBalance:
    terms = [(weight * weighted, weight), (plain, np.ones(plain.size))]
    evidence = ratio_of(log.clusters, terms, sign=(1.0, -1.0))
    difference, seen = evidence.value, evidence.std_error
    error = max(seen, min(chance, MOST_WIDENED * seen))
    size = abs(difference)
    if size < 1e-12:
        difference, size = 0.0, 0.0
    return PrognosisBalance(
        difference=difference,
        std_error=error,
        z=difference / error if error > 1e-12 else 0.0,
        half_width_share=_share(size, half_width),
    )
