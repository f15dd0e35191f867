"""Whether actions are taken as often as their propensities say: pooled, and action by action."""

from dataclasses import dataclass

import numpy as np

from etips.errors import DataError
from etips.evaluation.inference.checks import Clusters, Floats, Ints, totals
from etips.evaluation.inference.evidence import divide
from etips.evaluation.log import Log, View

CERTAIN = 4.0  # standard errors: ten bins or many actions, and bins with a handful of events
LEAST_PAIRS = 50  # pairs in a bin that can prove anything
LEAST_TAKEN = 20  # decisions, expected or seen, that can prove anything of an action
N_QUARTERS = 4


@dataclass(frozen=True)
class ActionCalibration:
    """Stated against observed share of each action, shape (n_actions,) each.

    Pooled bins cannot tell one action from another: propensities of one over the number of actions
    are right on average, whatever is done.
    """

    stated: Floats
    observed: Floats
    std_error: Floats


@dataclass(frozen=True)
class Calibration:
    """Stated against observed propensity over all actions, in bins of the stated one.

    Args:
        stated: Mean stated propensity in each bin, shape (bins,); NaN where empty.
        observed: How often the action was taken, shape (bins,).
        std_error: Clustered standard error of their difference, shape (bins,).
        n_pairs: (decision, action) pairs in each bin, shape (bins,).
        error: Expected calibration error: mean absolute difference, weighted by pairs.
        gap: Largest absolute difference among bins where it exceeds four standard errors; else 0.
        action_gap: Largest difference of an action beyond four standard errors, as a share of the
            larger of stated and observed; else 0.
        log_loss: Mean surprise at what was done, in nats.
        frequency_log_loss: The same, had the plain frequencies of the actions been stated.
        excess: How much worse the propensities are than the frequencies, if beyond three standard
            errors; else 0.
    """

    stated: Floats
    observed: Floats
    std_error: Floats
    n_pairs: Ints
    error: float
    gap: float
    by_action: ActionCalibration
    action_gap: float
    log_loss: float
    frequency_log_loss: float
    excess: float


def calibration(log: Log, *, n_bins: int = 10) -> Calibration:
    """Compare the propensities of all actions with what was done; needs `log.propensities`."""
    table = _table(log)
    place = np.minimum((table * n_bins).astype(np.int64), n_bins - 1)
    taken = np.zeros(table.shape)
    taken[log.rows, log.action] = 1
    flat = place.ravel()
    n_pairs = np.bincount(flat, minlength=n_bins)
    pairs = n_pairs.astype(np.float64)
    stated = divide(totals(flat, table.ravel(), n_bins), pairs)
    observed = divide(totals(flat, taken.ravel(), n_bins), pairs)
    std_error = divide(_spread(_binned(log.clusters, place, taken - table, n_bins)), pairs)
    size = np.abs(np.nan_to_num(observed - stated))
    certain = size > CERTAIN * np.nan_to_num(std_error)
    by_action = _by_action(log, taken - table)
    return Calibration(
        stated=stated,
        observed=observed,
        std_error=std_error,
        n_pairs=n_pairs,
        error=float((size * n_pairs).sum() / n_pairs.sum()),
        gap=float(size[certain & (n_pairs >= LEAST_PAIRS)].max(initial=0.0)),
        by_action=by_action,
        action_gap=_action_gap(by_action, log.n_decisions),
        **_surprise(log),
    )


def misplaced_weight(log: Log, policy: View) -> float:
    """Share of the policy's weight that lies on the wrong actions or patients, beyond chance.

    The decisions are put into cells, by action and by quarter of its stated propensity. In each the
    weights should add up to the policy's own probabilities; how far they may stray by chance
    follows from the propensities. Needs `log.propensities`.
    """
    table = np.maximum(_table(log), log.propensity_floor)
    speaks = np.ones(log.n_decisions) if policy.abstains is None else 1.0 - policy.abstains
    due = policy.probabilities * speaks[:, None]
    size = log.n_actions * N_QUARTERS
    cell = _quarters(table) + N_QUARTERS * np.arange(log.n_actions)
    noise = divide(due**2, table) - due**2
    flat = cell.ravel()
    mass = totals(flat, due.ravel(), size)
    spread = np.sqrt(totals(flat, np.nan_to_num(noise).ravel(), size))
    expected = totals(flat, (table * (due > 0)).ravel(), size)
    found = totals(cell[log.rows, log.action], policy.weight * speaks, size)
    astray = np.abs(found - mass)
    certain = (astray > CERTAIN * spread) & (expected >= LEAST_TAKEN / 2)
    total = mass.sum()
    return float(astray[certain].sum() / total / 2) if total > 0 else 0.0


def _table(log: Log) -> Floats:
    if log.propensities is None:
        raise DataError("propensities", "must be given for every action to check calibration")
    return log.propensities


def _by_action(log: Log, excess: Floats) -> ActionCalibration:
    """Shares of each action; the spread is that of cluster totals."""
    table, k = _table(log), log.n_actions
    observed = np.bincount(log.action, minlength=k) / log.n_decisions
    place = np.broadcast_to(np.arange(k), excess.shape)
    spread = _spread(_binned(log.clusters, place, excess, k))
    return ActionCalibration(table.mean(axis=0), observed, spread / log.n_decisions)


def _action_gap(actions: ActionCalibration, n: int) -> float:
    larger = np.maximum(actions.stated, actions.observed)
    size = np.abs(actions.observed - actions.stated)
    certain = (size > CERTAIN * actions.std_error) & (larger * n >= LEAST_TAKEN)
    return float(divide(size, larger)[certain].max(initial=0.0))


def _surprise(log: Log) -> dict[str, float]:
    """Log-loss of the table and of plain frequencies."""
    frequency = np.bincount(log.action, minlength=log.n_actions) / log.n_decisions
    own, plain = -np.log(log.propensity), -np.log(frequency[log.action])
    worse = own - plain
    spread = float(_spread(log.clusters.sums(worse - worse.mean())[:, None])[0])
    excess = float(worse.mean())
    return {
        "log_loss": float(own.mean()),
        "frequency_log_loss": float(plain.mean()),
        "excess": max(excess, 0.0) if excess > 3 * spread / log.n_decisions else 0.0,
    }


def _quarters(table: Floats) -> Ints:
    """Quarter 0..3 of each propensity among those of its action, shape (n, n_actions)."""
    cuts = np.quantile(table, (0.25, 0.5, 0.75), axis=0)
    return np.asarray((table > cuts[:, None, :]).sum(axis=0))


def _spread(sums: Floats) -> Floats:
    """Standard error of the grand total of cluster totals, shape (k, m) to (m,)."""
    k = len(sums)
    spread: Floats = np.sqrt(k / (k - 1) * ((sums - sums.mean(axis=0)) ** 2).sum(axis=0))
    return spread


def _binned(clusters: Clusters, place: Ints, values: Floats, n_bins: int) -> Floats:
    cell = clusters.code[:, None] * n_bins + place
    sums = totals(cell.ravel(), values.ravel(), clusters.size * n_bins)
    return sums.reshape(clusters.size, n_bins)
