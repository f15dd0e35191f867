"""A log whose fitted propensities are balanced."""

import numpy as np
from confounded_worlds import confounded, marginal, snips_bias, stays_of

from etips.evaluation.log import Log
from etips.results.balanced_log import balance_log


def test_propensities_that_ignore_a_confounder_are_replaced_and_kept_beside():
    world = confounded("linear", n_stays=500, seed=0)
    log = Log.of(stays_of(world), propensities=marginal(world))
    made = balance_log(log)
    assert made.rebalanced.used
    assert made.unbalanced is log
    assert np.array_equal(made.log.propensities, made.rebalanced.propensities)
    bias = [abs(snips_bias(world, own.propensities)) for own in (log, made.log)]
    assert bias[1] < bias[0] / 2


def test_right_ones_are_left_as_they_are():
    world = confounded("linear", n_stays=300, seed=1)
    log = Log.of(stays_of(world), propensities=world.right)
    made = balance_log(log)
    assert made.log is log
    assert made.unbalanced is None
    assert not made.rebalanced.used


def test_known_ones_are_not_touched():
    world = confounded("linear", n_stays=300, seed=2)
    log = Log.of(stays_of(world), propensities=marginal(world), known=True)
    assert balance_log(log) == (log, None, None)
