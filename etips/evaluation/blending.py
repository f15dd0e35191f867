"""Predicted losses and propensities from two sources, each as far as the log believes it.

Networks read the whole history and need many stays; regressions and trees on the last visible rows
need few. Both are cross-fitted, so one look at all decisions says how much of each to take.
"""

from typing import NamedTuple

import numpy as np

from etips.evaluation.inference.checks import Floats, Ints, Rows
from etips.evaluation.log import Log
from etips.evaluation.reweighting.balance_functions import Units, units_of
from etips.evaluation.reweighting.tilt import fit_tilt, log_table, normalised, tilted

MOST_DECISIONS = 20_000
"""Beyond so many, networks have all they need, and regressions would take their time."""

MOST_COLUMNS = 40
SHARES = np.linspace(0, 1, 21)


class Blend(NamedTuple):
    """A log with blended predictions or propensities.

    Args:
        log: The decisions.
        share: Of the simple models; the rest is what was there.
    """

    log: Log
    share: float


def blend_predictions(log: Log) -> Blend:
    """Mix the predicted losses of a log with what its features lead to expect.

    The share is that of least squared error on the logged actions, one number for all decisions.
    Mixed losses stay within those that were logged. A log without either source stays as it is.

    Args:
        log: With predicted losses that were cross-fitted by cluster.
    """
    if log.predicted is None or log.expected is None:
        return Blend(log, 0.0)
    own = log.rows, log.action
    simple = log.expected.by_action
    apart = simple[own].astype(np.float64) - log.predicted[own]
    square = float(apart @ apart)
    share = float(apart @ (log.loss - log.predicted[own])) / square if square > 0 else 0.0
    share = min(max(share, 0.0), 1.0)
    if share == 0:
        return Blend(log, 0.0)
    mixed = (1 - share) * log.predicted + share * simple
    return Blend(log.predicting(np.clip(mixed, log.loss.min(), log.loss.max())), share)


def blend_propensities(log: Log, fold: Ints) -> Blend:
    """Mix the fitted propensities of a log with those of a logistic regression.

    Logarithms are mixed, with the share of least log-loss on the logged actions. A log of many
    decisions, or without features or propensities of all actions, stays as it is.

    Args:
        log: With propensities that were cross-fitted by `fold`.
        fold: Of each decision, shape (n,).
    """
    if log.propensities is None or log.features is None or log.n_decisions > MOST_DECISIONS:
        return Blend(log, 0.0)
    networks = log_table(log.propensities)
    simple = log_table(regress(log.features, log.action, log.n_actions, fold))
    own = log.rows, log.action
    best, least = 0.0, np.inf
    for share in SHARES:
        mixed = (1 - share) * networks + share * simple
        score = float((np.logaddexp.reduce(mixed, axis=1) - mixed[own]).mean())
        if score < least - 1e-9:
            best, least = float(share), score
    if best == 0:
        return Blend(log, 0.0)
    return Blend(log.weighed_by(normalised((1 - best) * networks + best * simple)), best)


def regress(features: Rows, action: Ints, n_actions: int, fold: Ints) -> Floats:
    """Propensities of every action by a logistic regression on the features, fold by fold.

    Args:
        features: What was visible, shape (n, d).
        action: Taken, shape (n,).
        n_actions: How many there are.
        fold: Of each decision, shape (n,); it is asked of a regression that did not see its fold.
    """
    table = np.empty((len(action), n_actions))
    for held in np.unique(fold):
        learn, ask = np.flatnonzero(fold != held), np.flatnonzero(fold == held)
        count = np.bincount(action[learn], minlength=n_actions) + 1.0
        usual = np.log(count / count.sum())
        known: Floats = np.asarray(features[learn], np.float64)
        units = units_of(known)
        taken = np.eye(n_actions)[action[learn]] - np.exp(usual)
        along = np.abs(units.standardised(known).T @ taken).max(axis=1)
        columns = np.sort(np.argsort(-along, kind="stable")[:MOST_COLUMNS])
        units = units.take(columns)
        seen = _functions(known[:, columns], units)
        asked = _functions(features[ask][:, columns].astype(np.float64), units)
        theta = fit_tilt(np.tile(usual, (learn.size, 1)), seen, action[learn])
        table[ask] = tilted(np.tile(usual, (ask.size, 1)), asked, theta)
    return table


def _functions(part: Floats, units: Units) -> Floats:
    return np.column_stack([np.ones(len(part)), units.standardised(part)])
