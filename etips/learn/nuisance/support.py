"""Which actions have support: a floor on the propensity, lowered where the log shows its cost."""

import numpy as np

from etips.data.decisions import Bools, Floats
from etips.data.trajectories import Trajectories
from etips.evaluation.inference.contrast import difference
from etips.evaluation.log import PROPENSITY_FLOOR
from etips.evaluation.risk import snips
from etips.learn.fitting.candidates import LEAST_SIZE, estimate_candidate

SUPPORT = {0: 0.05, 1: 0.1}
"""Least propensity of an action that may be recommended, by lag. With lag 1 what the clinicians saw
at the decision itself is hidden, so rare actions were rare for reasons nobody wrote down."""

LOWEST = PROPENSITY_FLOOR
"""The floor that a policy may go down to. Below it propensities are clipped, so that nobody can
judge what it would do."""

MOST_WITHOUT = 0.05
"""Share of decisions that a floor may leave without any action; above it the floor is lowered."""

MARGIN = 1.5
"""Times the floor that the likeliest action must have: other networks will say a little less."""

TOLERANCE, ROUNDING = 0.02, 1e-6
"""Share of the decisions by which a policy may abstain more often than judged; and what lies
between a propensity and a floor below it, in float32."""

BEYOND_DOUBT = 2.0
"""Standard errors by which a trained policy must be better with the lowest floor than with its own.
It learned under its own, so that it seldom wants what it was denied: where the floor does no harm
the two are alike."""

HIDDEN = 3.0
"""Odds by which something hidden, or not fitted, may have moved clinicians to a rare action or away
from it. What is rare was given for a reason, and if that reason goes with the outcome, what was
done seldom looks better than it is: in worlds made to show that, a lead alone lowered the floor."""

LEAST_SHARE = 0.1
"""Effective share of the decisions that it must rest on then to be believed: of as many as the
fitted clinicians rest on, whose weights are all one unless propensities are given."""


def usual_floor(data: Trajectories, likely: Floats) -> float:
    """The floor that a policy is learned with if nobody says otherwise.

    Args:
        data: The stays.
        likely: Propensities, shape (n_decisions, n_actions).
    """
    return bearable(SUPPORT[data.lag], likely)


def may_go_lower(floor: float, data: Trajectories) -> bool:
    """Whether the log can be asked for a lower floor.

    With lag 1 it cannot: what made actions rare is hidden there, and the log confirms what is not
    so.
    """
    return not data.lag and floor > LOWEST


def bears_hidden(data: Trajectories, chance: Floats, held: Floats, free: Floats) -> bool:
    """Whether a policy gains by what is rare even if a hidden reason favoured whom it was given.

    Decisions that it makes otherwise with the lower floor are looked at. The mean loss after what
    it does then, with the weights that odds of `HIDDEN` to one make the worst, must be below that
    after what it does with its own floor.

    Args:
        data: The stays.
        chance: Clipped propensity of the logged actions, shape (n_decisions,).
        held: Probability of the logged action by the policy with its own floor.
        free: The same with the lower one.
    """
    shift = (free - held) / chance
    more, less = np.maximum(shift, 0), np.maximum(-shift, 0)
    if not less.any() or more.sum() ** 2 < LEAST_SIZE * (more**2).sum():
        return False
    usual = float(less @ data.logged_loss / less.sum())
    return highest_mean(data.logged_loss, more, HIDDEN) < usual


def highest_mean(loss: Floats, weight: Floats, odds: float) -> float:
    """The highest mean of losses where each weight may be so many times as large or as small.

    Args:
        loss: Shape (n,).
        weight: Not all zero, shape (n,).
        odds: At least 1.
    """
    order = np.argsort(loss)
    loss, weight = loss[order], weight[order]
    below = np.concatenate([[0.0], np.cumsum(weight)[:-1]])  # of those before, which count less
    below_loss = np.concatenate([[0.0], np.cumsum(weight * loss)[:-1]])
    above, above_loss = weight.sum() - below, weight @ loss - below_loss
    total = below / odds + above * odds
    return float(((below_loss / odds + above_loss * odds) / total)[total > 0].max())


def lead_of_lower(
    data: Trajectories, chance: Floats, held: Floats, free: Floats, imitated: Floats
) -> float:
    """Standard errors by which a policy is better with a lower floor; minus infinity if unsound.

    Args:
        data: The stays.
        chance: Clipped propensity of the logged actions, shape (n_decisions,).
        held: Probability of the logged action by the policy with its own floor.
        free: The same with the lower one.
        imitated: Propensity of the logged action as fitted, whatever was given.
    """
    cluster, loss, weight = data.cluster, data.logged_loss, imitated / chance
    most = weight.sum() ** 2 / (weight**2).sum()
    candidate = estimate_candidate(free, chance, loss, cluster, np.nan, None)
    if not candidate.sound or candidate.effective_size < LEAST_SHARE * most or not held.any():
        return -np.inf
    gap = difference(snips(loss, free / chance, cluster), snips(loss, held / chance, cluster))
    return -gap.difference / gap.std_error if gap.std_error > 0 else -np.inf


def agreed_floor(floor: float, together: Floats, judged: Bools) -> float:
    """The floor, lowered until a policy abstains about as often as it was judged to.

    Args:
        floor: That it was judged by.
        together: At each decision, the propensity that the floor is held against, as the policy
            finds it, shape (n_decisions,).
        judged: Whether it was above the floor when the policy was judged, shape (n_decisions,).
    """
    wanted = (~judged).mean()
    if (together < floor).mean() <= wanted + TOLERANCE:
        return floor
    lowered = np.quantile(together, wanted, method="lower")
    return float(min(floor, lowered * (1 - ROUNDING)))


def bearable(floor: float, likely: Floats) -> float:
    """The floor, halved until few decisions are left without an action well above it.

    With many actions that are about equally likely none of them reaches a fixed floor, and a policy
    would abstain everywhere.

    Args:
        floor: Wanted.
        likely: Propensities, shape (n_decisions, n_actions).
    """
    most = likely.max(axis=1)
    while (most < MARGIN * floor).mean() > MOST_WITHOUT:
        floor /= 2
    return floor
