"""The log of an evaluation with its fitted propensities balanced, and the log as it was before."""

from typing import NamedTuple

from etips.data.decisions import Ints
from etips.evaluation.log import Log
from etips.evaluation.reweighting.rebalance import Decided, Rebalanced, rebalance


class BalancedLog(NamedTuple):
    """A log after balancing.

    Args:
        log: The decisions, weighed as they are judged.
        unbalanced: The same with propensities as they were fitted; None where they still are.
        rebalanced: What balancing did; None where it was not tried.
    """

    log: Log
    unbalanced: Log | None = None
    rebalanced: Rebalanced | None = None


def balance_log(log: Log, *, fold: Ints | None = None) -> BalancedLog:
    """Correct the fitted propensities of a log where held-out decisions are the better for it.

    Args:
        log: With propensities of all actions that were fitted without the decision's own stay.
        fold: Of each decision, as they were fitted, shape (n,); dealt by cluster if left out.
    """
    if log.known or log.propensities is None or log.features is None or log.prognosis is None:
        return BalancedLog(log)
    decided = Decided(log.action, log.loss, log.features, log.prognosis)
    rebalanced = rebalance(log.propensities, decided, log.clusters, fold=fold, folds=log.folds)
    if not rebalanced.used:
        return BalancedLog(log, None, rebalanced)
    return BalancedLog(log.weighed_by(rebalanced.propensities), log, rebalanced)
