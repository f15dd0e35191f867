"""Which actions have support: a floor on the propensity, lifted where the log shows its cost."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from etips.data.decisions import Bools, Floats
from etips.data.trajectories import Trajectories
from etips.evaluation.inference.contrast import difference
from etips.evaluation.risk import snips
from etips.learn.fitting.candidates import estimate_candidate
from etips.learn.fitting.crossfit import out_of_fold
from etips.learn.fitting.prepare import Prepared
from etips.learn.fitting.requests import Requests, TrainingRequest
from etips.learn.nuisance.policy_start import PolicyStart
from etips.learn.nuisance.propensity import FittedPropensity
from etips.learn.training.objectives import Weighted, chosen, translated_ips, weigh
from etips.learn.training.settings import Settings
from etips.models.masking import forbid

SUPPORT = {0: 0.05, 1: 0.1}
"""Least propensity of an action that may be recommended, by lag. With lag 1 what the clinicians saw
at the decision itself is hidden, so rare actions were rare for reasons nobody wrote down."""

MOST_WITHOUT = 0.05
"""Share of decisions that a floor may leave without any action; above it the floor is lowered."""

MARGIN = 1.5
"""Times the floor that the likeliest action must have: other networks will say a little less."""

TOLERANCE, ROUNDING = 0.02, 1e-6
"""Share of the decisions by which a policy may abstain more often than judged; and what lies
between a propensity and a floor below it, in float32."""

PILOT_EPOCHS = 8
"""Most passes of a pilot: it need not be good, only show which side is better."""

FIRST_STEPS, SECOND_EPOCHS = 60, 3
"""Learning steps of the pilots of a first look, since after fewer both are still the clinicians,
and passes of a second one. The first cannot lift the floor: with lag 1, where what made actions
rare is hidden, 60 steps without a floor led by five standard errors and more on ICU-Sepsis (16,000
stays), and had left the log behind after 190."""

CLOSE = 1.0
"""Standard errors by which the pilot without a floor must lead after the first look for longer
pilots to be trained. Where the floor does no harm it does not lead."""

BEYOND_DOUBT = 4.0
"""Standard errors by which the pilot without a floor must win. Where the floor does harm it loses
by ten and more (digits); with two it was lifted once on ICU-Sepsis, at a cost of 0.003."""

LEAST_SHARE = 0.1
"""Effective share of the decisions that a pilot without a floor must rest on to be believed: of as
many as the fitted clinicians rest on, whose weights are all one unless propensities are given."""


def choose_support(
    prepared: Prepared,
    propensity: FittedPropensity,
    start: PolicyStart,
    chance: Floats,
    settings: Settings,
) -> Requests[float]:
    """The usual floor, unless the log itself shows that it costs more than it protects.

    Two pilot policies are trained, with and without the floor, at one translation (the mean loss)
    and judged on stays they did not learn from. The floor goes only if the pilot without it rests
    on sound weights and is better by `BEYOND_DOUBT` standard errors. Where there are many stays the
    pilots are short at first; longer ones are trained where these leave it open.

    Args:
        prepared: The stays.
        propensity: Fitted on them.
        start: Where policies begin.
        chance: Clipped propensity of the logged actions, shape (n_decisions,).
        settings: Of the pilots.
    """
    data = prepared.data
    likely = np.exp(propensity.log_probabilities)
    usual = bearable(SUPPORT[data.lag], likely)
    if not (likely < usual).any():
        return usual
    above, rows = likely >= usual, np.arange(len(likely))
    imitated = likely[rows, data.logged_action] / chance
    most = float(imitated.sum() ** 2 / (imitated**2).sum())
    for look in looks(settings, data.n_stays):
        held, free = yield from _pilots(prepared, start, chance, look, above)
        lead = _lead(data, chance, held, free, least=LEAST_SHARE * most)
        if lead > BEYOND_DOUBT and look.decides:
            return 0.0
        if lead < CLOSE:
            break
    return usual


class Look(NamedTuple):
    """How long pilots train.

    Args:
        stage: What the training is called.
        settings: Of it.
        n_batches: Of an epoch at most; None for all.
        decides: Whether the floor may be lifted after it.
    """

    stage: str
    settings: Settings
    n_batches: int | None = None
    decides: bool = True


def looks(settings: Settings, n_stays: int) -> list[Look]:
    """The pilots that may be trained, the short ones first where there are any."""
    longest, n_batches = min(settings.epochs, PILOT_EPOCHS), -(-n_stays // settings.batch_size)
    shortest = -(-FIRST_STEPS // n_batches)
    each: list[Look] = []
    if shortest < SECOND_EPOCHS < longest:
        shorter = replace(settings, epochs=shortest)
        each.append(Look("pilot", shorter, min(n_batches, FIRST_STEPS), decides=False))
    if max(shortest, SECOND_EPOCHS) < longest:
        second = max(shortest, SECOND_EPOCHS)
        each.append(Look("pilot-again" if each else "pilot", replace(settings, epochs=second)))
    name = ("pilot", "pilot-again", "pilot-long")[len(each)]
    return [*each, Look(name, replace(settings, epochs=longest))]


def _lead(data: Trajectories, chance: Floats, held: Floats, free: Floats, *, least: float) -> float:
    """Standard errors by which the pilot without a floor is better; minus infinity if unsound.

    Args:
        data: The stays.
        chance: Clipped propensity of the logged actions, shape (n_decisions,).
        held: Probability of the logged action by the pilot with the floor.
        free: The same by the one without.
        least: Effective decisions that the latter must rest on.
    """
    cluster, loss = data.cluster, data.logged_loss
    candidate = estimate_candidate(free, chance, loss, cluster, np.nan, None)
    if not candidate.sound or candidate.effective_size < least or not held.any():
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


def _pilots(
    prepared: Prepared,
    start: PolicyStart,
    chance: Floats,
    look: Look,
    above: Bools,
) -> Requests[tuple[Floats, Floats]]:
    """Probability of the logged action by the pilot with the floor and the one without."""
    n_folds = prepared.folds.n_networks
    allowed = prepared.by_row(above)
    log_chance = prepared.by_row(np.log(chance).astype(np.float32))
    shift = torch.tensor([[float(prepared.data.logged_loss.mean())]], device=allowed.device)

    holds = torch.tensor([True, False], device=allowed.device)  # the first set keeps to the floor
    each = holds.repeat_interleave(n_folds)

    def floored(outputs: Tensor, seen: Tensor, held: Tensor) -> Tensor:
        return forbid(start.logits(outputs, seen), allowed[seen] | ~held[:, None, None])

    def value(outputs: Tensor, seen: Tensor, these: slice) -> Tensor:
        logits, action = floored(outputs, seen, each[these]), prepared.action[seen]
        return translated_ips(logits, action, prepared.loss[seen], log_chance[seen], shift)

    def weight(outputs: Tensor, seen: Tensor, these: slice) -> Tensor:
        logits = floored(outputs, seen, each[these])
        return weigh(logits, prepared.action[seen], log_chance[seen])

    def readout(outputs: Tensor, seen: Tensor) -> Tensor:
        return chosen(floored(outputs, seen, holds), prepared.action[seen])

    bundle = yield TrainingRequest(
        prepared,
        start.sets(2),
        Weighted(value, weight),
        stage=look.stage,
        settings=look.settings,
        n_batches=look.n_batches,
    )
    with_floor, without = out_of_fold(bundle, prepared, readout).cpu().numpy()
    return with_floor, without
