"""Whether what a regression promises of rare actions comes true where clinicians did them.

Weights cannot tell: a rule that does what is rare rests on the few who got it. But a regression
says something of every decision, so that all decisions of a rare action can be held against it.
"""

import numpy as np

from etips.data.decisions import Bools, Floats, Ints
from etips.data.trajectories import Trajectories
from etips.evaluation.inference.checks import Clusters, code_ids
from etips.evaluation.inference.evidence import Evidence, ratio_of
from etips.learn.fitting.candidates import LEAST_SIZE
from etips.learn.nuisance.support import LOWEST, may_go_lower

SURE = 1.64
"""Standard errors by which some of the promise must come true."""

LEAST_PART = 1 / 3
"""Of the promise that must come true. What clinicians often do promises something too, and nearly
keeps it; clinics with little overlap kept 0.5 to 1.5 of it, ICU-Sepsis less than nothing."""


def lower_floor(floor: float, expected: Floats, data: Trajectories, likely: Floats) -> float | None:
    """The floor that a regression may go down to, or None where it must keep to the usual one.

    Args:
        floor: The usual one.
        expected: Predicted loss of every action, out of fold, shape (n_decisions, n_actions).
        data: The stays.
        likely: Propensities, out of fold, shape (n_decisions, n_actions).
    """
    if not may_go_lower(floor, data):
        return None
    logged = likely[np.arange(len(likely)), data.logged_action]
    rare = (logged >= LOWEST) & (logged < floor)
    kept = kept_promise(expected, likely, data.logged_action, data.logged_loss, data.cluster, rare)
    if kept is None or not kept.value >= max(LEAST_PART, SURE * kept.std_error):
        return None
    return LOWEST


def kept_promise(
    expected: Floats, likely: Floats, action: Ints, loss: Floats, cluster: Ints, among: Bools
) -> Evidence | None:
    """Of what was promised how much came true, 1 for all of it; None where too few show it.

    A promise is how much lower the predicted loss of the logged action is than that of what
    clinicians would have done on average. How much came true is the slope of what was seen on what
    was promised, where something was. It also takes back what the best of several predictions owes
    to luck. Promises of harm do not count: they keep well where rare actions harm, and say nothing
    of one that is said to help.

    Args:
        expected: Predicted loss of every action, out of fold, shape (n, n_actions).
        likely: Propensities, shape (n, n_actions).
        action: Logged, shape (n,).
        loss: Of the logged action, shape (n,).
        cluster: Patient (or stay) of each decision, shape (n,).
        among: Which decisions count, shape (n,).
    """
    usual = (likely * expected).sum(axis=1)
    promised = usual - expected[np.arange(len(action)), action]
    promised = np.where(among & (promised > 0), promised, 0.0)
    ids, code = code_ids(cluster)
    clusters = Clusters(code, ids)
    if (clusters.sums(promised) > 0).sum() < LEAST_SIZE:
        return None
    return ratio_of(clusters, [(promised * (usual - loss), promised**2)])
